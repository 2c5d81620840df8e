INSERT INTO opt_out (phone, note) VALUES ($1, 'of the scenario') ON CONFLICT DO NOTHING
