-- $1 reconciliation
SELECT kind, n FROM reconciliation_kind WHERE reconciliation_id = $1::bigint ORDER BY kind
