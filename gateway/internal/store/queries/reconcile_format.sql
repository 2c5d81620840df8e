-- $1 account
SELECT format FROM statement_format WHERE account_id = $1::int
