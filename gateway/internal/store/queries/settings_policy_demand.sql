SELECT id, access_number FROM channel WHERE signature_required ORDER BY id
