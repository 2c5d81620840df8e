-- The time of this transaction, and how many messages of each application passed on its day in China (no summer time since
-- 1991). At least one row an enterprise. $1 enterprises
SELECT now(), e.id, coalesce(u.app_id, 0), coalesce(u.messages, 0)
  FROM unnest($1::int[]) AS e (id)
  LEFT JOIN LATERAL (SELECT app_id, messages FROM daily_use WHERE enterprise_id = e.id AND day = (now() AT TIME ZONE interval '8 hours')::date OFFSET 0) AS u ON true
