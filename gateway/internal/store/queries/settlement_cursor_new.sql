INSERT INTO receipt_cursor (shard, pos) VALUES ($1, 0) ON CONFLICT (shard) DO NOTHING
