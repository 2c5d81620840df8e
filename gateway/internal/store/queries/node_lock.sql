-- Serialises taking and freeing of node numbers until the end of the transaction. Lock classes: 7 workflow, 8 and 9 settlement, 10 store.
SELECT pg_advisory_xact_lock(10, 1)
