-- A SUBMIT that waits for its time is cancelled (8): it goes back into the inbox, where the workflow ends it. $1 application, $2 Msg_Id
WITH gone AS (DELETE FROM scheduled WHERE app_id = $1 AND msg_ids @> ARRAY[$2::bigint] RETURNING *)
INSERT INTO inbox (pos, ends, segments, id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content)
SELECT id, 8, segments, id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content FROM gone
