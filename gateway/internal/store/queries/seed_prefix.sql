-- $1 prefix, $2 carrier
INSERT INTO prefix_rule AS r (prefix, carrier) VALUES ($1, $2)
ON CONFLICT (prefix) DO UPDATE SET carrier = excluded.carrier WHERE r.carrier <> excluded.carrier
