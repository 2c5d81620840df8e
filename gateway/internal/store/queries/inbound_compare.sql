-- Whose the rows with these ids are. $1 ids
SELECT id, node, session, seq FROM inbox WHERE id = ANY($1::bigint[])
