-- The sets of a key that cannot be worked on. $1 key
DELETE FROM uplink_segment WHERE set_key = $1 AND NOT sent RETURNING event_id
