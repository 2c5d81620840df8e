-- $1 reconciliation, $2 channels, $3 carriers, $4 ours, $5 our units, $6 theirs, $7 their units
INSERT INTO reconciliation_cell (reconciliation_id, channel_id, carrier, ours_n, ours_units, theirs_n, theirs_units)
SELECT $1::bigint, u.* FROM unnest($2::int[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) u
