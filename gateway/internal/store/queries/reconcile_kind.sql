-- $1 reconciliation, $2 kinds, $3 counts
INSERT INTO reconciliation_kind (reconciliation_id, kind, n) SELECT $1::bigint, u.* FROM unnest($2::text[], $3::bigint[]) u
