-- Rows of the inbox are cancelled (8): the workflow ends them. $1 ids
UPDATE inbox SET ends = 8 WHERE id = ANY($1::bigint[]) AND ends = 0
