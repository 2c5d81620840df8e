-- Sets whose time has come. Not those of an enterprise whose inbox lags: their other segments may be in it. $1 how many rows are looked at
WITH d AS MATERIALIZED (SELECT enterprise_id, app_id, set_key FROM segment_wait WHERE due_at <= now() ORDER BY due_at LIMIT $1)
SELECT DISTINCT d.enterprise_id, d.app_id, d.set_key FROM d
 WHERE coalesce((SELECT i.accepted_at FROM inbox i WHERE i.enterprise_id = d.enterprise_id ORDER BY i.pos LIMIT 1) >= now() - interval '2 seconds', true)
 ORDER BY 1, 2, 3
