-- One worker per enterprise, across processes, until the transaction ends. In a statement of its own: rows claimed under
-- the snapshot of the lock statement might be done already.
SELECT e FROM unnest($1::int[]) AS e WHERE pg_try_advisory_xact_lock(7, e)
