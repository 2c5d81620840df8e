-- Segments whose time has come: sets to be looked at again, and repetitions that need not be known any more. $1 rows at most
SELECT event_id, set_key, sent FROM uplink_segment WHERE due_at <= now() ORDER BY due_at LIMIT $1
