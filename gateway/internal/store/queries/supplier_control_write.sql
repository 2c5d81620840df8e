-- The six settings of a channel that are changed while it runs, noted in the audit. $1 channel, $2 desired_connections, $3 window_size, $4 warmup_seconds,
-- $5 drain_seconds, $6 response_seconds, $7 cooldown_seconds, $8 address of the caller. Answers with the settings version that has them.
WITH before AS (SELECT * FROM channel WHERE id = $1),
after AS (
  UPDATE channel SET desired_connections = $2, window_size = $3, warmup_seconds = $4, drain_seconds = $5, response_seconds = $6, cooldown_seconds = $7
   WHERE id = $1 RETURNING *),
noted AS (
  INSERT INTO admin_audit (actor, role, remote, action, resource, key, before, after)
  SELECT 'control entry', 'admin', $8, 'update', 'channels', after.id::text, to_jsonb(before), to_jsonb(after) FROM before, after)
UPDATE settings_version SET version = version + 1 WHERE EXISTS (SELECT FROM after) RETURNING version
