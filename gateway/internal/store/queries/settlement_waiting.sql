-- How much waits to be known: unknown submits and parked reports.
SELECT (SELECT count(*) FROM unknown_submit WHERE closed_at IS NULL), (SELECT count(*) FROM receipt_parked)
