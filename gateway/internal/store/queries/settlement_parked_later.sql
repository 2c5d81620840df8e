-- $1 event ids, sorted, $2 waits in ms
UPDATE receipt_parked p SET next_try_at = clock_timestamp() + u.wait * interval '1 ms', tries = p.tries + 1
  FROM unnest($1::bigint[], $2::int[]) AS u (id, wait) WHERE p.event_id = ANY($1::bigint[]) AND p.event_id = u.id
