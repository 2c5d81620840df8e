-- Reports whose submit is not known yet. $1 event ids, $2 Msg_Ids, $3 phones, $4 at, $5 accounts, $6 stats, $7 submit times, $8 done times, $9 Dest_Ids, $10 wait in ms
INSERT INTO receipt_parked (event_id, supplier_msg_id, phone, at, supplier_account, stat, submit_time, done_time, src, next_try_at)
SELECT u.*, clock_timestamp() + $10::int * interval '1 ms'
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[])
  AS u (event_id, supplier_msg_id, phone, at, supplier_account, stat, submit_time, done_time, src)
ON CONFLICT (event_id) DO NOTHING
