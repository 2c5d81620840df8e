SELECT signature_id, access_number, status FROM signature_number WHERE status = 2
