-- The unknown submits to the numbers $2 through the supplier accounts $1. OFFSET 0 keeps it a look-up per number.
SELECT k.n, x.submit_id, x.message_id, x.dispatched_at, x.part, x.src, x.channel_id, x.closed_at IS NOT NULL
  FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS k (account, phone, n)
 CROSS JOIN LATERAL (SELECT * FROM unknown_submit WHERE supplier_account = k.account AND phone = k.phone OFFSET 0) AS x
