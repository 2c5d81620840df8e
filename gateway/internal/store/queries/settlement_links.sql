-- Which channels have a usable connection somewhere, and which have had none for at least $1.
SELECT channel_id, lease_until > clock_timestamp() AND down_since IS NULL,
       least(lease_until, coalesce(down_since, lease_until)) < clock_timestamp() - $1::interval
  FROM channel_lease
