-- A long message of which nothing is with a supplier is cut for another channel; it is locked. $1 id, $2 parts, $3 their format, $4 their reference
UPDATE message SET parts = $2, out_fmt = $3, ref = $4 WHERE id = $1
