-- $1 table, $2 key, $3 columns
SELECT admin_update($1::text::regclass, $2::jsonb, $3::jsonb)
