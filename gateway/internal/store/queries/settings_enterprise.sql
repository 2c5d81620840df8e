SELECT id, status, name FROM enterprise
