-- $1 id, $2 status, $3 name
INSERT INTO enterprise (id, status, name) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, name = excluded.name
 WHERE (enterprise.status, enterprise.name) IS DISTINCT FROM (excluded.status, excluded.name)
