SELECT count(*) FROM inbox WHERE enterprise_id = $1
