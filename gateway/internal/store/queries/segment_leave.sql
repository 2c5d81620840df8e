-- Segments leave their waiting place in the transaction that makes something of them, all or none. $1 sorted ids
WITH gone AS (DELETE FROM segment_wait WHERE id = ANY($1::bigint[]) RETURNING 1)
SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM gone))
