-- Takes or renews the leases of channels. $1 channels and $5 for how many seconds each has had no usable connection, -1 = it
-- has one (pairwise), $2 node, $3 epoch of the node, $4 lease.
-- A lease passes on when it ran out, or when the node that holds it is not alive. The fence grows with each owner.
INSERT INTO channel_lease AS l (channel_id, node, epoch, fence, lease_until, down_since)
SELECT c, $2, $3, 1, clock_timestamp() + $4::interval, CASE WHEN d >= 0 THEN clock_timestamp() - make_interval(secs => d) END
  FROM unnest($1::int[], $5::float8[]) u(c, d) ORDER BY c
ON CONFLICT (channel_id) DO UPDATE
   SET node = excluded.node, epoch = excluded.epoch, lease_until = excluded.lease_until, down_since = excluded.down_since,
       fence = l.fence + CASE WHEN l.node = excluded.node AND l.epoch = excluded.epoch THEN 0 ELSE 1 END
 WHERE (l.node = excluded.node AND l.epoch = excluded.epoch) OR l.lease_until < clock_timestamp()
    OR NOT EXISTS (SELECT FROM node_lease n WHERE n.node = l.node AND n.epoch = l.epoch AND n.lease_until > clock_timestamp())
RETURNING channel_id, fence
