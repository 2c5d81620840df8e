-- What waits in inbox and outbox together, each counted no further than $1.
SELECT ((SELECT count(*) FROM (SELECT FROM inbox LIMIT $1::int) i) + (SELECT count(*) FROM (SELECT FROM submit_outbox LIMIT $1::int) o))::int
