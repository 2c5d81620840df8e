-- Renews the own lease and those of the nodes being adopted. $1 nodes and $2 epochs (pairwise), $3 lease,
-- $4 the own node, $5 its ids_until. A node missing from the answer was taken by another.
UPDATE node_lease l SET lease_until = clock_timestamp() + $3::interval,
       ids_until = CASE WHEN l.node = $4 THEN greatest(l.ids_until, $5::timestamptz) ELSE l.ids_until END
  FROM unnest($1::smallint[], $2::bigint[]) u(node, epoch)
 WHERE l.node = ANY($1::smallint[]) AND l.node = u.node AND l.epoch = u.epoch AND l.instance IS NOT NULL
RETURNING l.node
