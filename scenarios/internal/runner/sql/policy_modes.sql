-- An application's demands; a negative mode leaves the default.
INSERT INTO application_policy (app_id) VALUES ($1) ON CONFLICT (app_id) DO NOTHING
