-- From here on this server is the one. $1 the highest beat any process has told Redis
UPDATE installation i SET quarantined_at = NULL, reason = '', beat = greatest(i.beat, $1::bigint) + 1, system_identifier = s.system_identifier,
       timeline = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
  FROM pg_control_system() s
