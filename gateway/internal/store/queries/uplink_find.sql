-- $1 event ids, sorted
SELECT event_id, supplier_msg_id, phone, dest, at, supplier_account, channel_id, fmt, udhi, content FROM uplink WHERE event_id = ANY($1::bigint[])
