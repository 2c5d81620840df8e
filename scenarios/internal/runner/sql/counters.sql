-- What PostgreSQL has done so far: commits in this database, octets of WAL of the server.
SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()), (SELECT wal_bytes::bigint FROM pg_stat_wal)
