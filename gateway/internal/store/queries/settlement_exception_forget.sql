-- Exceptions nobody needs any more, a page at a time. $1 age, $2 most rows
DELETE FROM submit_exception WHERE id = ANY(ARRAY(SELECT id FROM submit_exception WHERE at < now() - $1::interval ORDER BY at LIMIT $2))
