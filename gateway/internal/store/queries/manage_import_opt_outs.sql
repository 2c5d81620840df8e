-- $1 numbers, $2 enterprise (0 everybody), $3 signature ('' every), $4 marketing only, $5 who
INSERT INTO opt_out AS o (phone, enterprise_id, signature, marketing_only, source, created_by)
SELECT DISTINCT phone, $2::int, $3::text, $4::boolean, 1, $5::text FROM unnest($1::bigint[]) phone
ON CONFLICT (phone, enterprise_id, signature) DO UPDATE SET marketing_only = excluded.marketing_only, source = 1, uplink_event_id = NULL, created_at = clock_timestamp(),
  created_by = excluded.created_by, reversed_at = NULL, reversed_by = ''
 WHERE o.reversed_at IS NOT NULL OR o.marketing_only AND NOT excluded.marketing_only
