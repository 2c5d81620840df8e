-- Holds dispatched commands whose time is over, so that their owner cannot take them back meanwhile. $1 sorted ids, $2 nodes and $3 times they were dispatched by and at
SELECT q.id FROM submit_outbox q JOIN unnest($1::bigint[], $2::smallint[], $3::timestamptz[]) AS u (id, node, at) ON u.id = q.id
 WHERE q.id = ANY($1::bigint[]) AND q.state = 1 AND q.node = u.node AND q.at = u.at
 ORDER BY q.id FOR UPDATE OF q
