-- The enterprise whose rows a CANCEL is about, until the transaction ends: the workflow waits for it, as it for the workflow. $1 enterprise
SELECT pg_advisory_xact_lock(7, $1)
