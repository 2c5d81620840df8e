-- Leaves of the partitioned facts. Attaching a ready table takes SHARE UPDATE EXCLUSIVE on the parent, so that inserts and
-- queries go on meanwhile; CREATE TABLE … PARTITION OF would stop them.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION ensure_leaf(parent text, leaf text, lo bigint, hi bigint, fill int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(10, 0); -- two keepers at once: the second finds the leaf
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = to_regclass(parent) AND inhrelid = to_regclass(leaf)) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (fillfactor = %s)', leaf, parent, fill);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, leaf, lo, hi);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION ensure_leaf;
