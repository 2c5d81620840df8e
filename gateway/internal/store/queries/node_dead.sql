-- Claims every node whose lease ran out. $1 the adopter, $2 its epoch, $3 lease. Raising the epoch keeps the old process
-- from renewing. An adopter that lost its own lease claims nothing.
UPDATE node_lease SET epoch = epoch + 1, adopter = $1, lease_until = clock_timestamp() + $3::interval
 WHERE node = ANY(ARRAY(SELECT d.node FROM node_lease d
                         WHERE d.instance IS NOT NULL AND d.node <> $1 AND d.lease_until < clock_timestamp()
                         ORDER BY d.node FOR UPDATE SKIP LOCKED))
   AND EXISTS (SELECT FROM node_lease me WHERE me.node = $1 AND me.epoch = $2 AND me.instance IS NOT NULL AND me.lease_until > clock_timestamp())
RETURNING node, epoch
