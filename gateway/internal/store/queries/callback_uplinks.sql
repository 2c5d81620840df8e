-- Messages from phones, each once however often the supplier repeats it (data §1.15), and their places in the queue. Keys are sorted and different.
-- $1 event ids, $2 Msg_Ids of the supplier, $3 phones, $4 dests, $5 at, $6 accounts, $7 channels, $8 formats, $9 udhis, $10 contents, $11 hashes of the contents
WITH u AS (
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::int[], $7::int[], $8::smallint[], $9::smallint[], $10::bytea[], $11::bigint[])
    AS u (event_id, supplier_msg_id, phone, dest, at, account, channel_id, fmt, udhi, content, hash)),
k AS (
  INSERT INTO uplink_key (supplier_account, supplier_msg_id, phone, dest, hash)
  SELECT account, supplier_msg_id, phone, dest, hash FROM u
  ON CONFLICT DO NOTHING RETURNING supplier_account, supplier_msg_id, phone, dest, hash),
stored AS (
  INSERT INTO uplink (event_id, supplier_msg_id, phone, dest, at, supplier_account, channel_id, fmt, udhi, content)
  SELECT u.event_id, u.supplier_msg_id, u.phone, u.dest, u.at, u.account, u.channel_id, u.fmt, u.udhi, u.content
    FROM u JOIN k ON (k.supplier_account, k.supplier_msg_id, k.phone, k.dest, k.hash) = (u.account, u.supplier_msg_id, u.phone, u.dest, u.hash)
  ON CONFLICT (event_id) DO NOTHING RETURNING event_id)
INSERT INTO uplink_queue (event_id, pos) SELECT event_id, event_id FROM stored
