-- $1 shard, $2 new position. It only moves forward.
WITH moved AS (UPDATE receipt_cursor SET pos = $2 WHERE shard = $1 AND pos < $2 RETURNING 1)
SELECT must_be(1, (SELECT count(*) FROM moved))
