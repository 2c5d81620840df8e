-- Settlement: parts that wait for their siblings, resends after a failed receipt, exceptions with their candidates.

-- +goose Up

-- A refused part of a long message of which no part was ever accepted or unknown. It waits until its siblings are known:
-- one accepted or unknown sends it again on the same channel; all refused send the whole message to the next candidate, or
-- end it. Owner: settlement, under the lock of the message row. Bound: the parts of messages with an open sibling.
CREATE TABLE part_refused (
  message_id bigint NOT NULL,
  submit_id  bigint NOT NULL,
  retry_of   bigint NOT NULL,
  channel_id int NOT NULL,
  result     int NOT NULL,                     -- the supplier's code
  attempt    smallint NOT NULL,
  part       smallint NOT NULL,
  PRIMARY KEY (message_id, part)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- How many more submits a message gets after a failed receipt: 0 = its failure is final at once.
ALTER TABLE application ADD COLUMN resend_failed smallint NOT NULL DEFAULT 0 CHECK (resend_failed BETWEEN 0 AND 2);

ALTER TABLE submit_exception ADD COLUMN candidates bigint[] NOT NULL DEFAULT '{}'; -- submits that could be meant
CREATE INDEX submit_exception_at ON submit_exception (at);

-- +goose Down
DROP INDEX submit_exception_at;
ALTER TABLE submit_exception DROP COLUMN candidates;
ALTER TABLE application DROP COLUMN resend_failed;
DROP TABLE part_refused;
