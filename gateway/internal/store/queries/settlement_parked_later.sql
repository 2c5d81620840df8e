-- $1 event ids, sorted, $2 wait in ms, $3 tries before: a row that was nudged meanwhile stays as it is
UPDATE receipt_parked SET next_try_at = clock_timestamp() + $2::int * interval '1 ms', tries = greatest(tries, 0) + 1
 WHERE event_id = ANY($1::bigint[]) AND tries = $3::smallint
