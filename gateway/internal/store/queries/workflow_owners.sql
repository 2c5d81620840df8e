-- Every enterprise with an inbox row, by a loose scan of the queue index: also those that were deleted meanwhile.
WITH RECURSIVE owner AS (
  (SELECT enterprise_id FROM inbox ORDER BY enterprise_id LIMIT 1)
  UNION ALL
  SELECT (SELECT i.enterprise_id FROM inbox i WHERE i.enterprise_id > o.enterprise_id ORDER BY i.enterprise_id LIMIT 1) FROM owner o WHERE o.enterprise_id IS NOT NULL)
SELECT enterprise_id FROM owner WHERE enterprise_id IS NOT NULL
