-- Channels that are not as they should be: without a usable connection anywhere for at least $1, or taken out by their breaker.
SELECT channel_id, coalesce(least(l.lease_until, l.down_since) < clock_timestamp() - $1::interval, false),
       coalesce(b.state, 0), coalesce(b.trips, 0), coalesce(b.until, 'epoch')
  FROM channel_lease l FULL JOIN channel_breaker b USING (channel_id)
 WHERE b.channel_id IS NOT NULL OR least(l.lease_until, l.down_since) < clock_timestamp() - $1::interval
 ORDER BY channel_id
