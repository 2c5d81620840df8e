-- What is under way. open_freezes and unknown are messages; the first from the entries alone.
SELECT 'inbox', count(*) FROM inbox
UNION ALL SELECT 'scheduled', count(*) FROM scheduled
UNION ALL SELECT 'segment_wait', count(*) FROM segment_wait
UNION ALL SELECT 'review_hold', count(*) FROM review_hold
UNION ALL SELECT 'uplink_queue', count(*) FROM uplink_queue
UNION ALL SELECT 'uplink_unmatched', count(*) FROM uplink_unmatched
UNION ALL SELECT 'submit_outbox', count(*) FROM submit_outbox
UNION ALL SELECT 'receipt_parked', count(*) FROM receipt_parked
UNION ALL SELECT 'delivery', count(*) FROM delivery
UNION ALL SELECT 'unknown', count(DISTINCT message_id) FROM unknown_submit WHERE closed_at IS NULL
UNION ALL SELECT 'open_freezes', coalesce(sum(CASE kind WHEN 2 THEN n WHEN 3 THEN -n WHEN 4 THEN -n ELSE 0 END), 0) FROM account_entry
UNION ALL SELECT 'dead_letter', count(*) FROM dead_letter
