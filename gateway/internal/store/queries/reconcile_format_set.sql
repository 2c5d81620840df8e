-- $1 account, $2 format
INSERT INTO statement_format (account_id, format) VALUES ($1::int, $2::jsonb) ON CONFLICT (account_id) DO UPDATE SET format = excluded.format
