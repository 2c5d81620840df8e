-- $1 reconciliation
SELECT channel_id, carrier, ours_n, ours_units, theirs_n, theirs_units FROM reconciliation_cell WHERE reconciliation_id = $1::bigint ORDER BY channel_id, carrier
