-- What waits, oldest first. $1 rows at most
SELECT event_id FROM uplink_queue WHERE pos > 0 ORDER BY pos LIMIT $1
