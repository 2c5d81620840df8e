-- The final stat of parts, once each; the messages are locked. $1 submitIds, sorted, $2..$3 their bounds, $4 stats
WITH ended AS (
  UPDATE submit s SET stat = u.stat FROM unnest($1::bigint[], $4::text[]) AS u (id, stat)
   WHERE s.id = ANY($1::bigint[]) AND s.id BETWEEN $2 AND $3 AND s.id = u.id AND s.stat = '' RETURNING 1)
SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM ended))
