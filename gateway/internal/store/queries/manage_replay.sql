-- A dead delivery is offered anew, with all its tries; $1 letter. The row is as it was dead, whatever columns deliveries have.
WITH gone AS (DELETE FROM dead_letter WHERE id = $1::bigint AND kind = 'delivery' RETURNING raw)
INSERT INTO delivery
SELECT (jsonb_populate_record(NULL::delivery, convert_from(raw, 'UTF8')::jsonb || '{"claim": null, "lease": null, "owner": null, "not_before": null, "attempts": 0}')).* FROM gone
