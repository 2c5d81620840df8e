-- Rows whose time has come go back into the inbox, at the place of their age. $1 how many
WITH due AS (
  DELETE FROM scheduled WHERE id = ANY(ARRAY(SELECT id FROM scheduled WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING *)
INSERT INTO inbox (pos, id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, segments)
SELECT id, id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, segments FROM due
