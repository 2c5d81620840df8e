-- Rows waiting per application, counted up to $2 rows of each enterprise. $1 enterprises
SELECT x.app_id, count(*)::int
  FROM unnest($1::int[]) e (id) CROSS JOIN LATERAL (SELECT app_id FROM inbox WHERE enterprise_id = e.id ORDER BY pos LIMIT $2) x
 GROUP BY x.app_id
