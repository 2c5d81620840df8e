-- T1. $1 ids, $2 msg_ids, $3 sessions, $4 seqs, $5 valid_until, $6 enterprises, $7 apps, $8 weights, $9 registered, $10 fmts, $11 udhis, $12 pk_totals,
-- $13 pk_numbers, $14 dests, $15 srcs, $16 services, $17 contents, $18 node,
-- $19 at_time. An id that is not returned existed before.
INSERT INTO inbox (id, pos, msg_id, session, seq, valid_until, enterprise_id, app_id, weight, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, at_time, node, accepted_at)
SELECT u.id, u.id, u.msg_id, u.session, u.seq, u.valid_until, u.enterprise, u.app, u.weight, u.registered, u.fmt, u.udhi, u.pk_total, u.pk_number, u.dest, u.src, u.service, u.content, u.at_time, $18, now()
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::int[], $7::int[], $8::int[], $9::smallint[], $10::smallint[], $11::smallint[],
    $12::smallint[], $13::smallint[], $14::bytea[], $15::bytea[], $16::bytea[], $17::bytea[], $19::timestamptz[])
  AS u (id, msg_id, session, seq, valid_until, enterprise, app, weight, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, at_time)
ON CONFLICT DO NOTHING RETURNING id
