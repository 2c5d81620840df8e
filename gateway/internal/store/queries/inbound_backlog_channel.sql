-- Channels at their ceiling of waiting commands. $1 channels, $2 their ceilings (pairwise); nothing is counted beyond these.
SELECT c.id, x.n FROM unnest($1::int[], $2::bigint[]) c (id, most)
 CROSS JOIN LATERAL (SELECT count(*)::int AS n FROM (SELECT FROM submit_outbox WHERE channel_id = c.id ORDER BY channel_id, lane, pos LIMIT c.most) q) x
 WHERE x.n >= c.most
