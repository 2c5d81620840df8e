-- Uplinks for customers. $1 ids, $2 uplinks, $3 arrived at, $4 applications, $5 formats, $6 udhis, $7 phones, $8 numbers they were sent to, $9 services, $10 contents
INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, app_id, accept_node, fmt, udhi, dest, src, service, body, kind)
SELECT u.id, u.id, u.event_id, 0, 0, u.at, u.app_id, 0, u.fmt, u.udhi, u.dest, u.src, u.service, u.body, 2
  FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::int[], $5::smallint[], $6::smallint[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[])
  AS u (id, event_id, at, app_id, fmt, udhi, dest, src, service, body)
