-- $1 table, $2 columns of the order, $3 from the highest down, $4 after this key, $5 columns to have, $6 rows at most
SELECT admin_list($1::text::regclass, $2::text[], $3::boolean, $4::jsonb, $5::jsonb, $6::int)
