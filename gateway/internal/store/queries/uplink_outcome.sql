-- $1 event ids, sorted, $2 outcomes, $3 applications, $4 sets, $5 whether they opt out (pairwise)
UPDATE uplink t SET outcome = u.outcome, app_id = u.app_id, set_id = u.set_id, opt_out = u.opt_out
  FROM unnest($1::bigint[], $2::smallint[], $3::int[], $4::bigint[], $5::boolean[]) u (id, outcome, app_id, set_id, opt_out)
 WHERE t.event_id = ANY($1::bigint[]) AND t.event_id = u.id
