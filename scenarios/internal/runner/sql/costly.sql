-- The twelve kinds of statement that cost most, of the gateway.
SELECT left(regexp_replace(query, '\s+', ' ', 'g'), 200), calls, total_exec_time, max_exec_time, rows
  FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
 WHERE d.datname = current_database() AND query !~ 'pg_stat_|pg_locks|FILTER \(WHERE e\.kind|FROM dead_letter'
 ORDER BY total_exec_time DESC LIMIT 12
