-- Segments that wait for the others. $1..$19 as in the inbox, $20 sets, $21 keys, $22 messages they repeat, $23 waiting since, $24 due_at, $25 at_time
INSERT INTO segment_wait (id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, set_id, set_key, repeats, waits_since, due_at, at_time)
SELECT u.id, u.msg_id, u.session, u.seq, u.accepted_at, u.valid_until, u.enterprise_id, u.app_id, u.weight, u.node, u.registered, u.fmt, u.udhi, u.pk_total, u.pk_number, u.dest, u.src, u.service, u.content, u.set_id, u.set_key, u.repeats, u.waits_since, u.due_at, u.at_time
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::int[], $8::int[], $9::int[],
    $10::smallint[], $11::smallint[], $12::smallint[], $13::smallint[], $14::smallint[], $15::smallint[], $16::bytea[], $17::bytea[], $18::bytea[], $19::bytea[],
    $20::bigint[], $21::bigint[], $22::bigint[], $23::timestamptz[], $24::timestamptz[], $25::timestamptz[])
  AS u (id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, set_id, set_key, repeats, waits_since, due_at, at_time)
