-- Every entry (but top-ups) against the messages that point at it; only those that differ.
WITH pointing AS (
  SELECT freeze_entry AS entry, 2 AS kind, enterprise_id, count(*) AS n, sum(units * price) AS amount FROM message WHERE freeze_entry <> 0 GROUP BY 1, 3
  UNION ALL
  SELECT settle_entry, CASE WHEN bill = 3 THEN 4 ELSE 3 END, enterprise_id, count(*), sum(units * price) FROM message WHERE settle_entry <> 0 GROUP BY 1, 2, 3
  UNION ALL
  SELECT refund_entry, 5, enterprise_id, count(*), sum(units * price) FROM message WHERE refund_entry <> 0 GROUP BY 1, 3)
SELECT e.id, e.account_id, e.kind, e.n, e.amount, coalesce(p.n, 0)::bigint, coalesce(p.amount, 0)::bigint
  FROM account_entry e LEFT JOIN pointing p ON p.entry = e.id AND p.kind = e.kind AND p.enterprise_id = e.account_id
 WHERE e.kind <> 1 AND (p.n IS DISTINCT FROM e.n OR p.amount IS DISTINCT FROM e.amount)
 ORDER BY e.id LIMIT 100
