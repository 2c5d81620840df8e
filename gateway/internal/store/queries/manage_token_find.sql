-- $1 id; tokens that no longer hold are not found
SELECT name, role, hash FROM admin_token WHERE id = $1::int AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
