-- $1 app, $2 carrier, $3 group
INSERT INTO application_route AS r (app_id, carrier, group_id) VALUES ($1, $2, $3)
ON CONFLICT (app_id, carrier) DO UPDATE SET group_id = excluded.group_id WHERE r.group_id <> excluded.group_id
