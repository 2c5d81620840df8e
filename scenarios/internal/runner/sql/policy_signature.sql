-- Approved for the enterprise.
INSERT INTO signature (enterprise_id, text, status, decided_at) VALUES ($1, $2, 2, clock_timestamp()) ON CONFLICT (enterprise_id, text) DO UPDATE SET status = 2
