SELECT count(*) FROM dead_letter WHERE id BETWEEN $1 AND $2
