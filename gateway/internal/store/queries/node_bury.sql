-- Ends the leases of processes that are known to be gone. $1 nodes and $2 processes (pairwise)
UPDATE node_lease l SET lease_until = least(l.lease_until, clock_timestamp())
  FROM unnest($1::smallint[], $2::text[]) u(node, process)
 WHERE l.node = ANY($1::smallint[]) AND l.node = u.node AND l.process = u.process AND l.adopter IS NULL
