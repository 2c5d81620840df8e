-- The final stat of parts, once each; the messages are locked. $1 submitIds, sorted, $2..$3 their bounds, $4 stat
WITH ended AS (UPDATE submit SET stat = $4::text WHERE id = ANY($1::bigint[]) AND id BETWEEN $2 AND $3 AND stat = '' RETURNING 1)
SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM ended))
