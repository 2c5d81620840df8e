-- A repeated comparison replaces the one before. $1 account, $2 day
WITH old AS (DELETE FROM reconciliation WHERE account_id = $1::int AND day = $2::date RETURNING id),
cells AS (DELETE FROM reconciliation_cell WHERE reconciliation_id IN (SELECT id FROM old)),
kinds AS (DELETE FROM reconciliation_kind WHERE reconciliation_id IN (SELECT id FROM old))
DELETE FROM reconciliation_difference WHERE reconciliation_id IN (SELECT id FROM old)
