-- Serialises taking and freeing of node numbers until the end of the transaction.
SELECT pg_advisory_xact_lock(8, 1)
