-- The first price of application $1, as its row says.
INSERT INTO price_history (app_id, price_version, price) SELECT id, price_version, price FROM application WHERE id = $1::int ON CONFLICT DO NOTHING
