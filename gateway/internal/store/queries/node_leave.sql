-- The process ends but leaves work behind: the lease ends now, and the number waits for an adopter. $1 node, $2 epoch.
UPDATE node_lease SET lease_until = clock_timestamp() WHERE node = $1 AND epoch = $2
