-- What the holder of a channel says about its breaker: closed is no row.
-- $1 channel, $2 state, $3 trips, $4 time until it is half-open, $5 reason, $6 node, $7 epoch of the node.
WITH holder AS (SELECT FROM channel_lease WHERE channel_id = $1 AND node = $6 AND epoch = $7),
closed AS (DELETE FROM channel_breaker WHERE channel_id = $1 AND $2::smallint = 0 AND EXISTS (SELECT FROM holder))
INSERT INTO channel_breaker AS b (channel_id, state, trips, until, reason, node)
SELECT $1, $2, $3, clock_timestamp() + $4::interval, $5, $6 FROM holder WHERE $2::smallint > 0
ON CONFLICT (channel_id) DO UPDATE SET state = excluded.state, trips = excluded.trips, until = excluded.until, reason = excluded.reason,
  node = excluded.node, since = CASE WHEN b.state = excluded.state THEN b.since ELSE clock_timestamp() END
