-- Numbers that want no more marketing. What is there and in force stays as it is; what was reversed is asked for anew.
-- $1 phones, $2 enterprises, $3 signatures ('' = every one), $4 uplinks (pairwise, keys sorted and different)
INSERT INTO opt_out AS o (phone, enterprise_id, signature, marketing_only, source, uplink_event_id, created_by)
SELECT u.phone, u.enterprise_id, u.signature, true, 2, u.event_id, 'uplink' FROM unnest($1::bigint[], $2::int[], $3::text[], $4::bigint[]) u (phone, enterprise_id, signature, event_id)
ON CONFLICT (phone, enterprise_id, signature) DO UPDATE SET marketing_only = true, source = 2, uplink_event_id = excluded.uplink_event_id, created_at = clock_timestamp(),
  created_by = excluded.created_by, reversed_at = NULL, reversed_by = ''
 WHERE o.reversed_at IS NOT NULL
