-- Which inbox rows have left the inbox, for a message or another waiting place; only asked after an inbox commit without an
-- answer. One statement: a row moves in one transaction, so that one snapshot finds it in one place. $1 ids, $2 first
-- Msg_Ids, $3 applications (each three one row), $4 lowest id of a message that can be meant (+ 0: the key is no
-- access path beside the index on msg_id)
SELECT u.msg_id FROM unnest($1::bigint[], $2::bigint[], $3::int[]) AS u (id, msg_id, app)
 WHERE (SELECT 1 FROM message m WHERE m.msg_id = u.msg_id AND m.id >= $4 LIMIT 1) IS NOT NULL
    OR (SELECT 1 FROM message_segment s WHERE s.msg_id = u.msg_id AND s.message_id + 0 >= $4 LIMIT 1) IS NOT NULL
    OR (SELECT 1 FROM segment_wait w WHERE w.id = u.id) IS NOT NULL
    OR (SELECT 1 FROM scheduled q WHERE q.app_id = u.app AND q.msg_ids @> ARRAY[u.msg_id] LIMIT 1) IS NOT NULL
