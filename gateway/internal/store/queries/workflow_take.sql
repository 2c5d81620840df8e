-- The rows leave the inbox in the transaction that makes messages of them, all or none. $1 sorted ids
WITH taken AS (DELETE FROM inbox WHERE id = ANY($1::bigint[]) RETURNING 1)
SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM taken))
