-- The number is clean again. $1 node, $2 epoch, $3 the time no id of it is later than.
UPDATE node_lease SET instance = NULL, adopter = NULL, lease_until = clock_timestamp(),
       ids_until = coalesce($3::timestamptz, ids_until)
 WHERE node = $1 AND epoch = $2 AND instance IS NOT NULL
