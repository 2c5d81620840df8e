-- Reconciliation with the daily statements of suppliers (data §2.1: unknowns are closed by evidence).

-- +goose Up
-- How an account's statement is written; without a row the format is reconcile.Default.
CREATE TABLE statement_format (account_id int PRIMARY KEY, format jsonb NOT NULL);

-- The newest comparison of an account and day; a repeated one replaces it.
CREATE TABLE reconciliation (
  id           bigint PRIMARY KEY,
  account_id   int NOT NULL,
  day          date NOT NULL,                 -- the supplier's business day
  at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  lines        bigint NOT NULL,               -- of this account in the statement
  differing    bigint NOT NULL,               -- submits that differ, unknown ones closed by it left out
  ratio        double precision NOT NULL,     -- differing ÷ the larger of ours and theirs
  closed       int NOT NULL,                  -- unknown submits closed by it
  file         text NOT NULL,
  sha256       bytea NOT NULL,
  UNIQUE (account_id, day)
);
CREATE TABLE reconciliation_cell (
  reconciliation_id bigint NOT NULL, channel_id int NOT NULL, carrier smallint NOT NULL,
  ours_n bigint NOT NULL, ours_units bigint NOT NULL, theirs_n bigint NOT NULL, theirs_units bigint NOT NULL,
  PRIMARY KEY (reconciliation_id, channel_id, carrier)
);
-- The first ones of each kind; reconciliation_kind has how many there were.
CREATE TABLE reconciliation_difference (
  reconciliation_id bigint NOT NULL, no int NOT NULL, kind text NOT NULL,
  submit_id bigint NOT NULL, message_id bigint NOT NULL, supplier_msg_id bigint NOT NULL, phone bigint NOT NULL,
  line int NOT NULL,                          -- in the statement, 0 = not there
  channel_id int NOT NULL, at timestamptz, ours text NOT NULL, theirs text NOT NULL,
  PRIMARY KEY (reconciliation_id, no)
);
CREATE TABLE reconciliation_kind (reconciliation_id bigint NOT NULL, kind text NOT NULL, n bigint NOT NULL, PRIMARY KEY (reconciliation_id, kind));

-- +goose Down
DROP TABLE reconciliation_kind, reconciliation_difference, reconciliation_cell, reconciliation, statement_format;
