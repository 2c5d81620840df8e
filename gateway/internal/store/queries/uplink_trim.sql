-- Uplinks whose time is over, what is still worked on left out. $1 the first id that is young enough, $2 rows at most
DELETE FROM uplink WHERE event_id = ANY(ARRAY(SELECT event_id FROM uplink WHERE event_id < $1 AND outcome <> 0 ORDER BY event_id LIMIT $2))
