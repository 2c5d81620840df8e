-- Entries replayed in ledger order: per account the lowest balance, and how many entries carry another balance than
-- the replay has at that point.
SELECT account_id, min(replayed)::bigint, count(*) FILTER (WHERE balance IS NOT NULL AND balance <> replayed) FROM (
  SELECT account_id, balance, sum(CASE kind WHEN 1 THEN amount WHEN 2 THEN -amount WHEN 3 THEN 0 ELSE amount END)
         OVER (PARTITION BY account_id ORDER BY at, id) AS replayed FROM account_entry) r
 GROUP BY account_id ORDER BY account_id
