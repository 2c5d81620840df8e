-- $1 node, $2 instance, $3 ids_until, $4 lease, $5 name, $6 process.
UPDATE node_lease SET epoch = epoch + 1, instance = $2, adopter = NULL, ids_until = $3,
       lease_until = clock_timestamp() + $4::interval, name = $5, process = $6, started_at = clock_timestamp()
 WHERE node = $1 AND instance IS NULL RETURNING epoch
