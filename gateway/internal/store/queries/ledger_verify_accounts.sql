-- Per account: the running balance against the sums of its entries.
SELECT a.id, a.available, a.credit,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 1), 0)::bigint AS topped_up,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 2), 0)::bigint AS freezes,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 3), 0)::bigint AS charged,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 4), 0)::bigint AS released,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 5), 0)::bigint AS refunded,
       coalesce(sum(e.n) FILTER (WHERE e.kind = 2), 0)::bigint AS freeze_n,
       coalesce(sum(e.n) FILTER (WHERE e.kind = 3), 0)::bigint AS charge_n,
       coalesce(sum(e.n) FILTER (WHERE e.kind = 4), 0)::bigint AS release_n,
       coalesce(sum(e.n) FILTER (WHERE e.kind = 5), 0)::bigint AS refund_n
  FROM account a LEFT JOIN account_entry e ON e.account_id = a.id
 GROUP BY a.id ORDER BY a.id
