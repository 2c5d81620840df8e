-- $1 table, $2 key
SELECT admin_delete($1::text::regclass, $2::jsonb)
