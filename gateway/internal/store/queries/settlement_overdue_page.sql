-- A page of messages in order of ids, and which of them still wait for a receipt. $1 after this id, $2 before this id, $3 most rows
SELECT id, state = 2 AND receipt_overdue_at IS NULL FROM message WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
