-- A report whose submit was not found is looked for anew, as long as any other. $1 id
INSERT INTO receipt_parked (event_id, supplier_msg_id, phone, at, supplier_account, stat, submit_time, done_time, src, next_try_at)
SELECT d.id, (CASE WHEN u.n > 9223372036854775807 THEN u.n - 18446744073709551616 ELSE u.n END)::bigint, (u.r->>'phone')::bigint, clock_timestamp(),
       (u.r->>'account')::int, u.r->>'stat', u.r->>'submitTime', u.r->>'doneTime', u.r->>'src', clock_timestamp()
  FROM dead_letter d, LATERAL (SELECT j AS r, (j->>'supplierMsgId')::numeric AS n FROM (SELECT convert_from(d.raw, 'UTF8')::jsonb AS j) x) u
 WHERE d.id = $1
ON CONFLICT (event_id) DO NOTHING
