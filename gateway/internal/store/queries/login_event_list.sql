-- The last logins and refusals of an account, newest first. $1 sp_id, $2 how many at most
SELECT last_at, first_at, n, host(address), status, cause, detail, version, stamp, node FROM login_event WHERE sp_id = $1 ORDER BY last_at DESC LIMIT $2
