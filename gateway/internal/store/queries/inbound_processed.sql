-- Which inbox rows became messages; only asked after an inbox commit without an answer. $1 phones and $2 Msg_Ids of the first recipients (pairwise),
-- $3 not before. A message whose content could not be read has phone 0.
SELECT u.msg_id FROM unnest($1::bigint[], $2::bigint[]) u (phone, msg_id)
 CROSS JOIN LATERAL (SELECT FROM message m WHERE m.phone = ANY(ARRAY[u.phone, 0]) AND m.created_at > $3 AND m.msg_id = u.msg_id LIMIT 1) x
