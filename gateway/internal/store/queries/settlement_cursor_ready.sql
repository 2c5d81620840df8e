-- Shards with receipts above their cursor: a look-up per shard, which EXISTS might turn into a join over the whole log.
SELECT c.shard FROM receipt_cursor c WHERE c.shard > 0 AND (SELECT true FROM receipt r WHERE r.shard = c.shard AND r.seq > c.pos LIMIT 1)
