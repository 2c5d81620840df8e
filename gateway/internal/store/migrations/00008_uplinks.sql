-- Uplinks on their way to customers. uplink and uplink_key are the callback's (a row each, once however often the supplier
-- repeats it); the queue is written in the same statement, so that a stored uplink is always one that somebody works on.

-- +goose Up

-- What became of it; written once, by the core, when it leaves the queue or its long message ends.
ALTER TABLE uplink
  ADD outcome smallint NOT NULL DEFAULT 0 CHECK (outcome BETWEEN 0 AND 6), -- uplink.Outcome: 0 not yet, 1 to its customer, 2 part of a long one that went to its customer whole,
                                               -- 3 part of one that did not get whole, 4 a repetition, 5 nobody's (a row of uplink_unmatched), 6 put aside by an operator
  ADD app_id  int NOT NULL DEFAULT 0,          -- whose it is; 0 = not known
  ADD set_id  bigint NOT NULL DEFAULT 0,       -- parts of one long message: event id of the one that came first
  ADD opt_out boolean NOT NULL DEFAULT false;  -- its text is one of opt_out_word
CREATE INDEX uplink_key_at ON uplink_key (at); -- keys leave after a while

-- Owner: uplink, one transaction at a time in all processes. Bound: what the edges hold (event.retain_max) and the callback took.
CREATE TABLE uplink_queue (
  event_id bigint PRIMARY KEY,
  pos      bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX uplink_queue_pos ON uplink_queue (pos);
INSERT INTO uplink_queue (event_id, pos) SELECT event_id, event_id FROM uplink; -- what was stored before there was a way on

-- Segments of long uplinks: of one that is not complete (sent = 0), or of one that went on, kept for a while because
-- suppliers repeat segments. Owner: uplink; leaves at due_at.
CREATE TABLE uplink_segment (
  event_id bigint PRIMARY KEY,
  set_id   bigint NOT NULL,
  set_key  bigint NOT NULL,                    -- hash of account, number, phone, reference and total
  hash     bigint NOT NULL,                    -- of the content
  repeats  bigint NOT NULL DEFAULT 0,          -- set that had the same segment a short while ago
  since    timestamptz NOT NULL,
  due_at   timestamptz NOT NULL,
  number   smallint NOT NULL,
  sent     boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX uplink_segment_key ON uplink_segment (set_key);
CREATE INDEX uplink_segment_due ON uplink_segment (due_at);

-- Uplinks that are nobody's, for operators. The presence of a row is the state; bounded by age and number.
CREATE TABLE uplink_unmatched (
  event_id         bigint PRIMARY KEY,
  at               timestamptz NOT NULL,       -- of its arrival
  supplier_account int NOT NULL,
  reason           smallint NOT NULL CHECK (reason IN (1, 2, 3)), -- 1 no application has the number, 2 several have it and none of them wrote to the phone, 3 it could not be worked on: see the log
  opt_out          boolean NOT NULL,           -- its text asks for no more messages: somebody should see to it
  phone            text NOT NULL,
  dest             text NOT NULL
);

-- Texts that ask for no more messages, in the normal form of policy.Normalize. Read for every batch: a change holds at once.
CREATE TABLE opt_out_word (word text PRIMARY KEY CHECK (length(word) BETWEEN 1 AND 32), created_at timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO opt_out_word (word) VALUES ('t'), ('td'), ('tt'), ('n'), ('r'), ('退'), ('退订'), ('拒收'), ('取消订阅'), ('stop'), ('unsubscribe');

-- +goose Down
DROP TABLE opt_out_word, uplink_unmatched, uplink_segment, uplink_queue;
DROP INDEX uplink_key_at;
ALTER TABLE uplink DROP outcome, DROP app_id, DROP set_id, DROP opt_out;
