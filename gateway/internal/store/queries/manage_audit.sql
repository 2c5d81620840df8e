-- $1 token, $2 actor, $3 role, $4 remote, $5 action, $6 resource, $7 key, $8 idempotency key, $9 before, $10 after
INSERT INTO admin_audit (token_id, actor, role, remote, action, resource, key, idem, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
