-- The first process of an installation writes where it lives; WAL names carry the timeline as it is now, the control file as
-- of the last checkpoint.
INSERT INTO installation (system_identifier, timeline)
SELECT system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int FROM pg_control_system()
ON CONFLICT DO NOTHING
