-- Holds that nobody decided in time. $1 how many
SELECT message_id FROM review_hold WHERE expires_at <= now() ORDER BY expires_at LIMIT $1
