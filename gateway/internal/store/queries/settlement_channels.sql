-- Every channel with commands in the queue, by a loose scan of its index.
WITH RECURSIVE c AS (
  (SELECT channel_id FROM submit_outbox WHERE channel_id > 0 ORDER BY channel_id LIMIT 1)
  UNION ALL
  SELECT (SELECT q.channel_id FROM submit_outbox q WHERE q.channel_id > c.channel_id ORDER BY q.channel_id LIMIT 1) FROM c WHERE c.channel_id IS NOT NULL)
SELECT channel_id FROM c WHERE channel_id IS NOT NULL
