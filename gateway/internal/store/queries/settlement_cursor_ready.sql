-- Shards with receipts above their cursor.
SELECT c.shard FROM receipt_cursor c WHERE c.shard > 0 AND EXISTS (SELECT FROM receipt r WHERE r.shard = c.shard AND r.seq > c.pos)
