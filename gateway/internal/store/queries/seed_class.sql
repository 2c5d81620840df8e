-- $1 channel (0 all), $2 code, $3 class
INSERT INTO result_class AS r (channel_id, code, class) VALUES ($1, $2, $3)
ON CONFLICT (channel_id, code) DO UPDATE SET class = excluded.class WHERE r.class <> excluded.class
