-- The lowest number never used, as a clean one. $1 = the process's clock: no id was issued before.
INSERT INTO node_lease (node, epoch, ids_until, lease_until)
SELECT n, 0, $1, clock_timestamp() FROM generate_series(1, 255) n
 WHERE NOT EXISTS (SELECT FROM node_lease l WHERE l.node = n) ORDER BY n LIMIT 1
RETURNING node, ids_until
