-- Every submit that is unknown, for people, oldest first.
SELECT u.submit_id, u.message_id, u.phone, u.dispatched_at, u.supplier_account, u.channel_id, u.part, u.src, m.enterprise_id, m.app_id, m.units * m.price
  FROM unknown_submit u JOIN message m ON m.id = u.message_id
 WHERE u.closed_at IS NULL ORDER BY u.submit_id
