-- $1 event ids, sorted, $2 reasons, $3 whether they opt out (pairwise)
INSERT INTO uplink_unmatched (event_id, at, supplier_account, reason, opt_out, phone, dest)
SELECT t.event_id, t.at, t.supplier_account, u.reason, u.opt_out, t.phone, t.dest
  FROM unnest($1::bigint[], $2::smallint[], $3::boolean[]) u (id, reason, opt_out), uplink t
 WHERE t.event_id = ANY($1::bigint[]) AND t.event_id = u.id
ON CONFLICT (event_id) DO NOTHING
