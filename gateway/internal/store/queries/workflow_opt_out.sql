-- Which numbers want no messages of an enterprise (0 = of anybody), for a signature ('' = all) or only of the marketing
-- lane. "+ 0": not by the index for people, which would read whole lists. $1 sorted phones, $2 the batch's enterprises and 0
SELECT phone, enterprise_id, signature, marketing_only FROM opt_out
 WHERE phone = ANY($1::bigint[]) AND enterprise_id + 0 = ANY($2::int[]) AND reversed_at IS NULL
