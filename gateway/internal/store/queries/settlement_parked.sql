-- Parked reports whose next try has come. $1 most rows
SELECT event_id, supplier_msg_id, phone, at, supplier_account, stat, submit_time, done_time, src, tries
  FROM receipt_parked WHERE next_try_at <= now() ORDER BY next_try_at LIMIT $1
