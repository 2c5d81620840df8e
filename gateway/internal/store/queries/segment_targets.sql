-- The messages that repeated segments belong to, locked in ascending order. $1 sorted ids, $2..$3 their bounds
SELECT id, state, stat, dest FROM message WHERE id = ANY($1::bigint[]) AND id BETWEEN $2 AND $3 ORDER BY id FOR NO KEY UPDATE
