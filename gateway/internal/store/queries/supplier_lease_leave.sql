-- Gives leases of channels up. $1 channels, $2 node, $3 epoch.
UPDATE channel_lease SET lease_until = clock_timestamp() WHERE channel_id = ANY($1::int[]) AND node = $2 AND epoch = $3
