-- Those nobody has replayed, for the gauge.
SELECT kind, count(*) FROM dead_letter WHERE replayed_at IS NULL GROUP BY kind
