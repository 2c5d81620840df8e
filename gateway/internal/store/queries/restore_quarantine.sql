-- The first reason stays. $1 reason
UPDATE installation SET quarantined_at = clock_timestamp(), reason = $1 WHERE quarantined_at IS NULL
