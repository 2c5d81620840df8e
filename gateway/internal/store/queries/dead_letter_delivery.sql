-- A receipt or uplink that its customer did not take is offered again, with all its tries. $1 id
INSERT INTO delivery
SELECT r.* FROM dead_letter d, jsonb_populate_record(NULL::delivery,
       convert_from(d.raw, 'UTF8')::jsonb || jsonb_build_object('claim', NULL, 'lease', NULL, 'owner', NULL, 'not_before', NULL, 'attempts', 0, 'created_at', clock_timestamp())) r
 WHERE d.id = $1
ON CONFLICT (id) DO NOTHING
