SELECT id, msg_id, enterprise_id, phone, price, units, state, bill, reason, registered, stat,
       freeze_entry, settle_entry, refund_entry, accepted_at, created_at, final_at
  FROM message ORDER BY id
