-- How many messages of each enterprise are held for review, counted up to $2. $1 enterprises
SELECT e.id, (SELECT count(*) FROM (SELECT 1 FROM review_hold WHERE enterprise_id = e.id LIMIT $2) AS h) FROM unnest($1::int[]) AS e (id)
