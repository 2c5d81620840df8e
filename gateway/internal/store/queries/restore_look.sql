-- The row as stored, and what the server says of itself.
SELECT i.id::text, i.beat, i.system_identifier, i.timeline, i.quarantined_at, i.reason,
       s.system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
  FROM installation i, pg_control_system() s FOR UPDATE OF i
