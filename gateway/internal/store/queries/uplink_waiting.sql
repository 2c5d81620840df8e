-- The segments under keys. $1 keys, sorted
SELECT event_id, set_id, set_key, hash, repeats, since, due_at, number, sent FROM uplink_segment WHERE set_key = ANY($1::bigint[])
