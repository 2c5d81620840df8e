-- $1 event ids, sorted
DELETE FROM receipt_parked WHERE event_id = ANY($1::bigint[])
