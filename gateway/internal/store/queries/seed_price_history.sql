-- Notes the current price version of every application that has no row for it yet.
INSERT INTO price_history (app_id, price_version, price) SELECT id, price_version, price FROM application ON CONFLICT DO NOTHING
