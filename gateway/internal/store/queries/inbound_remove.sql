-- Rows inserted by a repeated commit although their first one was processed already. $1 ids
DELETE FROM inbox WHERE id = ANY($1::bigint[])
