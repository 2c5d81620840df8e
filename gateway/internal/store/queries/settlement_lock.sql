-- One owner at a time, across processes, until the transaction ends. $1 class of locks, $2 which
SELECT pg_try_advisory_xact_lock($1::int, $2::int)
