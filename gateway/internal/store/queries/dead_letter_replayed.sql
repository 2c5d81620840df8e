-- $1 id
UPDATE dead_letter SET replayed_at = clock_timestamp() WHERE id = $1 AND replayed_at IS NULL
