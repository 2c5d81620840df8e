SELECT id, enterprise_id, text, status FROM signature WHERE status = 2
