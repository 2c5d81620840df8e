SELECT pos FROM receipt_cursor WHERE shard = $1
