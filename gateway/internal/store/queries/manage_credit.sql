-- $1 account, $2 credit, $3 credit as its editor saw it
UPDATE account SET credit = $2::bigint WHERE id = $1::int AND credit = $3::bigint RETURNING available
