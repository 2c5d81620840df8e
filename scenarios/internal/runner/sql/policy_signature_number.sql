-- Approved for every access number there is.
INSERT INTO signature_number (signature_id, access_number, status)
SELECT s.id, c.access_number, 2 FROM signature s CROSS JOIN (SELECT DISTINCT access_number FROM channel) c ON CONFLICT DO NOTHING
