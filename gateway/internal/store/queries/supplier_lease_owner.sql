-- Who holds the leases of channels, for people. $1 channels.
SELECT l.channel_id, l.node, coalesce(n.name, ''), l.lease_until
  FROM channel_lease l LEFT JOIN node_lease n ON n.node = l.node WHERE l.channel_id = ANY($1::int[])
