-- A dead delivery is offered anew, with all its tries; $1 letter. The row is as it was dead, whatever columns deliveries have.
WITH letter AS (UPDATE dead_letter SET replayed_at = clock_timestamp() WHERE id = $1::bigint AND kind = 'delivery' AND replayed_at IS NULL RETURNING raw)
INSERT INTO delivery
SELECT (jsonb_populate_record(NULL::delivery, convert_from(raw, 'UTF8')::jsonb || '{"claim": null, "lease": null, "owner": null, "not_before": null, "attempts": 0}' || jsonb_build_object('created_at', clock_timestamp()))).* FROM letter
