-- The oldest $2 receipts of shard $1 above its cursor. The shard is locked by a statement before this one.
SELECT r.seq, r.event_id, r.supplier_msg_id, r.phone, r.at, r.supplier_account, r.stat, r.submit_time, r.done_time, r.src
  FROM receipt r WHERE r.shard = $1 AND r.seq > (SELECT pos FROM receipt_cursor WHERE shard = $1) ORDER BY r.seq LIMIT $2
