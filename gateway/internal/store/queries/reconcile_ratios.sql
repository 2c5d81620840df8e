-- The newest day of each account, for the gauge.
SELECT DISTINCT ON (account_id) account_id, ratio FROM reconciliation ORDER BY account_id, day DESC
