-- Holds of an enterprise (0 = of all) behind $2, oldest first. $1 enterprise, $2 message, $3 how many, $4..$5 bounds of the
-- message ids
WITH h AS MATERIALIZED (
  SELECT message_id, enterprise_id, app_id, keyword_id, held_at, expires_at FROM review_hold
   WHERE ($1::int = 0 OR enterprise_id = $1) AND message_id > $2 ORDER BY message_id LIMIT $3)
SELECT h.message_id, h.enterprise_id, h.app_id, h.keyword_id, coalesce(k.word, ''), h.held_at, h.expires_at, m.phone, m.units, m.price, coalesce(m.signature, ''), m.fmt, m.udhi, m.content
  FROM h CROSS JOIN LATERAL (SELECT phone, units, price, signature, fmt, udhi, content FROM message WHERE id = h.message_id AND id BETWEEN $4 AND $5 OFFSET 0) AS m
  LEFT JOIN keyword k ON k.id = h.keyword_id
 ORDER BY h.message_id
