-- Segments that wait, or went on. $1 event ids, $2 sets, $3 keys, $4 hashes, $5 sets they repeat, $6 since, $7 due_at, $8 numbers, $9 went on (pairwise, ids sorted)
INSERT INTO uplink_segment AS s (event_id, set_id, set_key, hash, repeats, since, due_at, number, sent)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::timestamptz[], $8::smallint[], $9::boolean[])
ON CONFLICT (event_id) DO UPDATE SET set_id = excluded.set_id, repeats = excluded.repeats, due_at = excluded.due_at, sent = excluded.sent
