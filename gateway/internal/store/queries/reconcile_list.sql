-- Newest day first. $1 limit
SELECT account_id, day, at, lines, differing, ratio, closed, file, sha256 FROM reconciliation ORDER BY day DESC, account_id LIMIT $1::int
