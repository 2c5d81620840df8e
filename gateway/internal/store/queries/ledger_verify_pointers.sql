-- Every pointer of a message must have its entry, of the right kind and account.
SELECT m.id, x.entry, x.kind FROM message m
 CROSS JOIN LATERAL (VALUES (m.freeze_entry, 2), (m.settle_entry, CASE WHEN m.bill = 3 THEN 4 ELSE 3 END), (m.refund_entry, 5)) x (entry, kind)
  LEFT JOIN account_entry e ON e.id = x.entry AND e.kind = x.kind AND e.account_id = m.enterprise_id
 WHERE x.entry <> 0 AND e.id IS NULL
 ORDER BY m.id LIMIT 100
