SELECT event_id, supplier_msg_id, supplier_account, phone, dest FROM uplink ORDER BY event_id
