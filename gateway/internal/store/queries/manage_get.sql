-- $1 table, $2 key, $3 lock the row
SELECT admin_get($1::text::regclass, $2::jsonb, $3::boolean)
