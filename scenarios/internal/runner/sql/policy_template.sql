INSERT INTO template (enterprise_id, text, status, decided_at) VALUES ($1, $2, 2, clock_timestamp())
