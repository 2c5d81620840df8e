-- $1 event ids, sorted
DELETE FROM uplink_segment WHERE event_id = ANY($1::bigint[])
