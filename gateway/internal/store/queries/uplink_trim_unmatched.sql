-- Nobody's uplinks: those that are too old, and the oldest of too many. $1 the first id that is young enough, $2 how many may stay, $3 rows at most
DELETE FROM uplink_unmatched WHERE event_id = ANY(ARRAY(
  SELECT event_id FROM uplink_unmatched WHERE event_id < greatest($1, coalesce((SELECT event_id FROM uplink_unmatched ORDER BY event_id DESC OFFSET $2 - 1 LIMIT 1), 0))
   ORDER BY event_id LIMIT $3))
