-- Segments that are cancelled (8) go back into the inbox, where the workflow ends them. $1 ids
WITH gone AS (DELETE FROM segment_wait WHERE id = ANY($1::bigint[]) RETURNING *)
INSERT INTO inbox (pos, ends, id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content)
SELECT id, 8, id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content FROM gone
