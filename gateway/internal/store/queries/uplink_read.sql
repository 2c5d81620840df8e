-- Uplinks that are still in the queue. $1 event ids, sorted
SELECT event_id, supplier_msg_id, phone, dest, at, supplier_account, channel_id, fmt, udhi, content FROM uplink
 WHERE event_id = ANY(ARRAY(SELECT q.event_id FROM uplink_queue q WHERE q.event_id = ANY($1::bigint[])))
