-- Rows go back into their queues. $1 ids, sorted, $2 claims, $3 tries given back, $4 milliseconds to wait (all pairwise)
UPDATE delivery d SET claim = NULL, owner = NULL, lease = NULL, attempts = d.attempts - u.refund,
       not_before = CASE WHEN u.wait > 0 THEN clock_timestamp() + u.wait * interval '1 millisecond' END
  FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::int[]) u (id, claim, refund, wait)
 WHERE d.id = ANY($1::bigint[]) AND d.id = u.id AND d.claim = u.claim
