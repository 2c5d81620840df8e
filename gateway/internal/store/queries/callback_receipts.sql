-- The log of reports (data T5). The caller is the only writer of the shard, and does not go on before it knows the outcome.
-- $1 event ids, $2 seqs, $3 Msg_Ids of the supplier, $4 phones, $5 at, $6 accounts, $7 channels, $8 shard, $9 stats, $10 submit times, $11 done times, $12 Dest_Ids
INSERT INTO receipt (event_id, seq, supplier_msg_id, phone, at, supplier_account, channel_id, shard, stat, submit_time, done_time, src)
SELECT u.event_id, u.seq, u.supplier_msg_id, u.phone, u.at, u.supplier_account, u.channel_id, $8, u.stat, u.submit_time, u.done_time, u.src
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::int[], $7::int[], $9::text[], $10::text[], $11::text[], $12::text[])
  AS u (event_id, seq, supplier_msg_id, phone, at, supplier_account, channel_id, stat, submit_time, done_time, src)
ON CONFLICT DO NOTHING
