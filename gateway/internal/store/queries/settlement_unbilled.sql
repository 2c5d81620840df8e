-- Delivered after the money was released: once a message. $1 messages, $2 amounts, $3 kinds
INSERT INTO ledger_exception (id, message_id, amount, kind)
SELECT u.id, u.id, u.amount, u.kind FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS u (id, amount, kind) ON CONFLICT (id) DO NOTHING
