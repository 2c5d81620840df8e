-- What waits to be known: unknown submits, those older than $1, and since when; refused parts that wait for their siblings.
SELECT count(*), count(*) FILTER (WHERE dispatched_at < clock_timestamp() - $1::interval), min(dispatched_at), (SELECT count(*) FROM part_refused)
  FROM unknown_submit WHERE closed_at IS NULL
