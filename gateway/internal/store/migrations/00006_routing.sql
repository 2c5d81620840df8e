-- Which carrier serves a number, in this order: prefix_rule (temporary, by an operator), number_override (ported numbers),
-- the number segments built into the program.

-- +goose Up

-- Ported numbers, imported or learned from a supplier that answered "not ours". Looked up by each batch, never loaded.
CREATE TABLE number_override (
  phone      bigint PRIMARY KEY,                                                 -- normalised
  carrier    smallint NOT NULL CHECK (carrier BETWEEN 1 AND 4),                  -- routing.Carrier
  source     smallint NOT NULL CHECK (source IN (1, 2, 3)),                      -- 1 import, 2 learned, 3 an operator
  channel_id int,                                                                -- learned: whose answer it was
  at         timestamptz NOT NULL DEFAULT clock_timestamp()                      -- of the import, the answer or the change
);

-- A rule is temporary: it may name its end, at which it is deleted and the settings are loaded again.
ALTER TABLE prefix_rule
  ADD COLUMN until      timestamptz,
  ADD COLUMN note       text NOT NULL DEFAULT '',
  ADD COLUMN created_at timestamptz NOT NULL DEFAULT clock_timestamp();

-- The supplier takes only signatures that were approved for the access number of this channel (signature_number, 00005).
ALTER TABLE channel ADD COLUMN signature_required boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE channel DROP COLUMN signature_required;
ALTER TABLE prefix_rule DROP COLUMN until, DROP COLUMN note, DROP COLUMN created_at;
DROP TABLE number_override;
