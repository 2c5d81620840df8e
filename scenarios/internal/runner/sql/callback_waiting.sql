SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'cmppgw/callback' AND state = 'active' AND wait_event_type = 'Lock'
