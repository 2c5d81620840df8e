-- All waiting parts of messages go on. $1 sorted message ids, $2 how many parts they have here
WITH gone AS (DELETE FROM part_refused WHERE message_id = ANY($1::bigint[]) RETURNING 1)
SELECT must_be($2::bigint, (SELECT count(*) FROM gone))
