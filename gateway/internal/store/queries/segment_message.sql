-- The customer's segments of joined messages, each once. $1 messages, $2 msg_ids, $3 keys, $4 hashes, $5 sessions, $6 accepted_at, $7 apps, $8 numbers, $9 registered, $10 nodes
INSERT INTO message_segment (message_id, msg_id, set_key, hash, accept_session, accepted_at, app_id, number, registered, accept_node)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::int[], $8::smallint[], $9::smallint[], $10::smallint[])
ON CONFLICT DO NOTHING
