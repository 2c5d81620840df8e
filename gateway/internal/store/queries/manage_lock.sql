-- One change of settings at a time; released at the end of the transaction.
SELECT pg_advisory_xact_lock(10, 7)
