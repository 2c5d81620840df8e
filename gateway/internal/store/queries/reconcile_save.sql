-- $1 id, $2 account, $3 day, $4 lines, $5 differing, $6 ratio, $7 closed, $8 file, $9 sha256
INSERT INTO reconciliation (id, account_id, day, lines, differing, ratio, closed, file, sha256)
VALUES ($1::bigint, $2::int, $3::date, $4::bigint, $5::bigint, $6::float8, $7::int, $8::text, $9::bytea)
