-- Share of updates that touched no index, per table (partitions added up under their parent).
SELECT coalesce(p.relname, t.relname), sum(t.n_tup_upd)::bigint, sum(t.n_tup_hot_upd)::bigint
  FROM pg_stat_user_tables t
  LEFT JOIN pg_inherits i ON i.inhrelid = t.relid
  LEFT JOIN pg_class p ON p.oid = i.inhparent
 GROUP BY 1 HAVING sum(t.n_tup_upd) > 0 ORDER BY 1
