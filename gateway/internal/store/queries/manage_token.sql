-- $1 name, $2 role, $3 SHA-256 of the secret, $4 expiry
INSERT INTO admin_token AS t (name, role, hash, expires_at) VALUES ($1, $2::smallint, $3, $4) RETURNING to_jsonb(t)
