-- $1 account, $2 day
SELECT id, account_id, day, at, lines, differing, ratio, closed, file, sha256 FROM reconciliation WHERE account_id = $1::int AND day = $2::date
