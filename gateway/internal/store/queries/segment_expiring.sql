-- Sets whose time has come. Not those of an enterprise whose inbox lags, for their other segments may be in it; they hide
-- none behind them. $1 how many rows are taken
WITH d AS MATERIALIZED (
  SELECT s.enterprise_id, s.app_id, s.set_key FROM segment_wait s
   WHERE s.due_at <= now() AND coalesce((SELECT i.accepted_at FROM inbox i WHERE i.enterprise_id = s.enterprise_id ORDER BY i.pos LIMIT 1) >= now() - interval '2 seconds', true)
   ORDER BY s.due_at LIMIT $1)
SELECT DISTINCT enterprise_id, app_id, set_key FROM d ORDER BY 1, 2, 3
