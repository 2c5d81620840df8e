-- Who has logged in, most recent last. $1 how many at most
SELECT sp_id, address FROM (SELECT sp_id, address, last_at FROM login_event WHERE status = 0 ORDER BY last_at DESC LIMIT $1) x ORDER BY last_at
