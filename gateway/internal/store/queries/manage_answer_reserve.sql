-- Waits for a concurrent request with the same key. Keys older than a week are free again. $1 token, $2 key, $3 SHA-256 of the request
WITH old AS (DELETE FROM admin_answer WHERE at < clock_timestamp() - interval '168 hours' AND (token_id, idem) <> ($1::int, $2::text))
INSERT INTO admin_answer (token_id, idem, request) VALUES ($1::int, $2::text, $3) ON CONFLICT DO NOTHING
