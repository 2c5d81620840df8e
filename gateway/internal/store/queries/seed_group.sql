-- $1 id, $2 name
INSERT INTO channel_group (id, name) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE channel_group.name <> excluded.name
