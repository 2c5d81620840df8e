-- To the minute: a busy token costs a write a minute. $1 id
UPDATE admin_token SET used_at = clock_timestamp() WHERE id = $1::int AND (used_at IS NULL OR used_at < clock_timestamp() - interval '1 minute')
