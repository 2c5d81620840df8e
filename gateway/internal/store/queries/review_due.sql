-- Holds that nobody decided in time. $1 how many
SELECT message_id FROM review_hold WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1
