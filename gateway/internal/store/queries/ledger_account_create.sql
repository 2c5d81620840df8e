-- $1 account, $2 credit
INSERT INTO account (id, available, credit) VALUES ($1, 0, $2) ON CONFLICT (id) DO NOTHING
