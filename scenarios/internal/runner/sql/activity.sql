-- The longest lock wait and the longest idle transaction of this moment in milliseconds, and how many transactions ago the
-- oldest snapshot any session still needs was taken.
SELECT coalesce((SELECT max(extract(epoch FROM clock_timestamp() - waitstart)) FROM pg_locks WHERE NOT granted), 0) * 1000,
       coalesce(max(extract(epoch FROM clock_timestamp() - state_change)) FILTER (WHERE state LIKE 'idle in transaction%'), 0) * 1000,
       coalesce(max(age(backend_xmin)) FILTER (WHERE pid <> pg_backend_pid()), 0)
  FROM pg_stat_activity WHERE datname = current_database()
