-- Rows waiting per application. $1 enterprises, $2 how many rows of each are counted at most (pairwise)
SELECT x.app_id, count(*)::int
  FROM unnest($1::int[], $2::bigint[]) e (id, most) CROSS JOIN LATERAL (SELECT app_id FROM inbox WHERE enterprise_id = e.id ORDER BY pos LIMIT e.most) x
 GROUP BY x.app_id
