-- $1 event ids, sorted, $2 wait in ms
UPDATE receipt_parked SET next_try_at = clock_timestamp() + $2::int * interval '1 ms', tries = tries + 1 WHERE event_id = ANY($1::bigint[])
