-- Locks what the sweeper is about to put off or drop, in ascending order; nudges do the same. $1 event ids, sorted
SELECT event_id FROM receipt_parked WHERE event_id = ANY($1::bigint[]) ORDER BY event_id FOR UPDATE
