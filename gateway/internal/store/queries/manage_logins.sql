-- The newest logins and refusals of an account. $1 SP id, $2 rows at most
SELECT host(address), status, cause, n, first_at, last_at, version, detail FROM login_event WHERE sp_id = $1::text ORDER BY last_at DESC LIMIT $2
