-- Temporary rules whose end has come go, and the settings are loaded anew.
WITH gone AS (DELETE FROM prefix_rule WHERE until <= now() RETURNING 1)
UPDATE settings_version SET version = version + 1 WHERE EXISTS (SELECT FROM gone)
