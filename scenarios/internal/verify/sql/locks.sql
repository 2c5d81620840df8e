-- What other sessions of this database hold up.
SELECT 'waiting_locks', count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'
UNION ALL SELECT 'idle_in_transaction', count(*) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '1 second'
UNION ALL SELECT 'prepared_transactions', count(*) FROM pg_prepared_xacts WHERE database = current_database()
