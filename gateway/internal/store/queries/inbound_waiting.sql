-- What waits of each application: the keys of its long messages that are not complete, and how many rows wait for their time.
-- $1 applications, $2 keys, $3 rows that are looked at at most, of each
SELECT a.id, ARRAY(SELECT DISTINCT s.set_key FROM (SELECT set_key FROM segment_wait WHERE app_id = a.id ORDER BY set_key LIMIT $3) s LIMIT $2),
       (SELECT count(*)::int FROM (SELECT 1 FROM scheduled WHERE app_id = a.id LIMIT $3) s)
  FROM unnest($1::int[]) AS a (id)
