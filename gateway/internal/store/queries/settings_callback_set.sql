-- $1 event type, $2 mode
WITH v AS (UPDATE settings_version SET version = version + 1)
INSERT INTO callback_mode (event_type, mode) VALUES ($1, $2) ON CONFLICT (event_type) DO UPDATE SET mode = excluded.mode
