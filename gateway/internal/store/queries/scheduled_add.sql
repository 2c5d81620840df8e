-- Rows that wait for their time. $1..$19 as in the inbox, $20 due_at, $21 segments, $22 Msg_Ids, as texts of arrays
INSERT INTO scheduled (id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, due_at, segments, msg_ids)
SELECT u.id, u.msg_id, u.session, u.seq, u.accepted_at, u.valid_until, u.enterprise_id, u.app_id, u.weight, u.node, u.registered, u.fmt, u.udhi, u.pk_total, u.pk_number, u.dest, u.src, u.service, u.content, u.due_at, u.segments, u.msg_ids::bigint[]
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::int[], $8::int[], $9::int[],
    $10::smallint[], $11::smallint[], $12::smallint[], $13::smallint[], $14::smallint[], $15::smallint[], $16::bytea[], $17::bytea[], $18::bytea[], $19::bytea[],
    $20::timestamptz[], $21::jsonb[], $22::text[])
  AS u (id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, due_at, segments, msg_ids)
