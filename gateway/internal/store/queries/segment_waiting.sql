-- The segments that wait under keys; the enterprise is locked. $1 applications, $2 keys
SELECT id, set_id, repeats, waits_since, due_at, msg_id, session, seq, accepted_at, valid_until, at_time, enterprise_id, app_id, weight, node, registered, fmt, udhi,
       pk_total, pk_number, dest, src, service, content
  FROM segment_wait WHERE app_id = ANY($1::int[]) AND set_key = ANY($2::bigint[])
