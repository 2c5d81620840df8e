-- The books of every account at one moment: the running balance beside the sums of its entries.
SELECT a.id, a.available,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 1), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 2), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 3), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 4), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 5), 0)::bigint
  FROM account a LEFT JOIN account_entry e ON e.account_id = a.id GROUP BY a.id ORDER BY a.id
