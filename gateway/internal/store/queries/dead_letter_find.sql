-- Locked for a replay. $1 ids
SELECT id, at, kind, reason, account, raw, replayed_at FROM dead_letter WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE
