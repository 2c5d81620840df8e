SELECT event_id, supplier_msg_id, supplier_account, phone, stat FROM receipt ORDER BY event_id
