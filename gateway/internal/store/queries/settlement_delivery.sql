-- Receipts for customers. $1 ids, $2 messages, $3 msg_ids, $4 sessions, $5 accepted_at, $6 apps, $7 nodes, $8 stats, $9 done_at, $10 dests, $11 srcs, $12 services
INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, app_id, accept_node, stat, done_at, dest, src, service, kind)
SELECT u.id, u.id, u.message_id, u.msg_id, u.session, u.accepted_at, u.app_id, u.node, u.stat, u.done_at, u.dest, u.src, u.service, 1
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::int[], $7::smallint[], $8::text[], $9::timestamptz[],
    $10::bytea[], $11::bytea[], $12::bytea[])
  AS u (id, message_id, msg_id, session, accepted_at, app_id, node, stat, done_at, dest, src, service)
