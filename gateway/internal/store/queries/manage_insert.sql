-- $1 table, $2 columns
SELECT admin_insert($1::text::regclass, $2::jsonb)
