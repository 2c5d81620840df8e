-- How many deliveries each application has, counted no further than $1: applications are found by jumping along the index.
WITH RECURSIVE a (app_id) AS (
  (SELECT app_id FROM delivery ORDER BY app_id LIMIT 1)
  UNION ALL
  SELECT (SELECT d.app_id FROM delivery d WHERE d.app_id > a.app_id ORDER BY d.app_id LIMIT 1) FROM a WHERE a.app_id IS NOT NULL)
SELECT app_id, (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.app_id = a.app_id LIMIT $1) n) FROM a WHERE app_id IS NOT NULL
