-- $1 application, $2 secret
UPDATE application t SET secret = $2 WHERE id = $1::int RETURNING to_jsonb(t)
