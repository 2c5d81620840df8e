-- Closed ones whose report does not come any more. $1 age
DELETE FROM unknown_submit WHERE closed_at < now() - $1::interval
