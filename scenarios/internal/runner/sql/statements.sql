-- Statements of this database so far; how many kinds took over 20 ms at least once, and the slowest by mean. The harness's own
-- are left out by the sign at their start.
SELECT coalesce(sum(calls), 0)::bigint, count(*) FILTER (WHERE max_exec_time > 20),
       coalesce((array_agg(left(regexp_replace(query, '\s+', ' ', 'g'), 120) ORDER BY mean_exec_time DESC))[1], ''),
       coalesce(max(mean_exec_time), 0)
  FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
 WHERE d.datname = current_database() AND s.userid = (SELECT oid FROM pg_roles WHERE rolname = current_user)
   AND query !~ 'pg_stat_|pg_locks|FILTER \(WHERE e\.kind|FROM dead_letter'
