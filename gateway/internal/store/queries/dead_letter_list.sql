-- Newest first. $1 kind ('' = all), $2 also replayed ones, $3 limit
SELECT id, at, kind, reason, account, raw, replayed_at FROM dead_letter
 WHERE ($1::text = '' OR kind = $1::text) AND ($2::boolean OR replayed_at IS NULL) ORDER BY id DESC LIMIT $3::int
