-- SUBMITs that wait: for their time (At_Time), or for the other segments of their message. Both places are between the
-- inbox and the messages: a row is in exactly one of inbox, scheduled, segment_wait, under its own id, and moves in one
-- transaction under the enterprise's advisory lock.

-- +goose Up

ALTER TABLE inbox
  ADD COLUMN at_time  timestamptz,                       -- At_Time: not before; NULL = at once
  ADD COLUMN ends     smallint NOT NULL DEFAULT 0 CHECK (ends IN (0, 7, 8)), -- 0 to be sent; else the message.State it ends in (expired, cancelled)
  ADD COLUMN segments jsonb;                             -- a joined message: the customer's SUBMITs it was made of; NULL = one SUBMIT

-- Owner: workflow's sweep, which moves what is due back into the inbox. Bound: 7 days ahead, and per application (inbound).
CREATE TABLE scheduled (
  id            bigint PRIMARY KEY,                      -- of the inbox row it was
  msg_id        bigint NOT NULL,
  session       bigint NOT NULL,
  seq           bigint NOT NULL,
  due_at        timestamptz NOT NULL,                    -- At_Time, or the end of the validity when that comes first
  accepted_at   timestamptz NOT NULL,
  valid_until   timestamptz,
  enterprise_id int NOT NULL,
  app_id        int NOT NULL,
  weight        int NOT NULL,
  node          smallint NOT NULL,
  registered    smallint NOT NULL,
  fmt           smallint NOT NULL,
  udhi          smallint NOT NULL,
  pk_total      smallint NOT NULL,
  pk_number     smallint NOT NULL,
  dest          bytea NOT NULL,
  src           bytea NOT NULL,
  service       bytea NOT NULL,
  content       bytea NOT NULL,
  segments      jsonb,
  msg_ids       bigint[] NOT NULL                        -- first Msg_Id of every SUBMIT in it, for CANCEL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX scheduled_due ON scheduled (due_at);
CREATE INDEX scheduled_app ON scheduled (app_id);

-- Segments whose message is not complete. Owner: workflow. Bound: sets per application (inbound); leaves when the set is
-- complete, or at due_at.
CREATE TABLE segment_wait (
  id            bigint PRIMARY KEY,                      -- of the inbox row it was
  set_id        bigint NOT NULL,                         -- id of the first segment that came: two texts may use one reference
  set_key       bigint NOT NULL,                         -- hash of application, recipients, Src_Id, reference and total
  msg_id        bigint NOT NULL,
  session       bigint NOT NULL,
  seq           bigint NOT NULL,
  repeats       bigint NOT NULL DEFAULT 0,               -- a message sent a short while ago that had the same segment; 0 = none
  waits_since   timestamptz NOT NULL,
  due_at        timestamptz NOT NULL,                    -- when the set is looked at again: it expires, or its doubt ends
  accepted_at   timestamptz NOT NULL,
  valid_until   timestamptz,
  at_time       timestamptz,
  enterprise_id int NOT NULL,
  app_id        int NOT NULL,
  weight        int NOT NULL,
  node          smallint NOT NULL,
  registered    smallint NOT NULL,
  fmt           smallint NOT NULL,
  udhi          smallint NOT NULL,
  pk_total      smallint NOT NULL,
  pk_number     smallint NOT NULL,
  dest          bytea NOT NULL,
  src           bytea NOT NULL,
  service       bytea NOT NULL,
  content       bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX segment_wait_set ON segment_wait (app_id, set_key);
CREATE INDEX segment_wait_due ON segment_wait (due_at);

-- The customer's segments of a joined message, one row for each SUBMIT (repeated ones too): each has a Msg_Id and gets a
-- receipt of its own. A fact like message, in leaves by message_id.
CREATE TABLE message_segment (
  message_id     bigint NOT NULL,
  msg_id         bigint NOT NULL,                        -- the recipient's own
  set_key        bigint NOT NULL,
  hash           bigint NOT NULL,                        -- of the segment's content
  accept_session bigint NOT NULL,
  accepted_at    timestamptz NOT NULL,
  app_id         int NOT NULL,
  number         smallint NOT NULL,                      -- 1..total
  registered     smallint NOT NULL,
  accept_node    smallint NOT NULL,
  PRIMARY KEY (message_id, msg_id)
) PARTITION BY RANGE (message_id);
CREATE INDEX message_segment_set ON message_segment (set_key);
CREATE INDEX message_segment_msg ON message_segment (msg_id);

-- A message with segments > 0 has its whole text in content (in fmt, behind the elements of its header other than
-- concatenation when udhi is set). Its part i of parts upstream is what sms.Split makes of it with out_fmt and ref.
ALTER TABLE message
  ADD COLUMN segments   smallint NOT NULL DEFAULT 0,     -- segments of the customer; 0 = one SUBMIT, sent as it is
  ADD COLUMN out_fmt    smallint NOT NULL DEFAULT 0,     -- Msg_Fmt of its parts
  ADD COLUMN recipients smallint NOT NULL DEFAULT 1,     -- of the SUBMIT whose first recipient this is; 1 for the others
  ADD COLUMN ref        int NOT NULL DEFAULT 0;          -- reference of its parts; from 65536 on the header has 16 bits of it
-- CANCEL, people who ask for a Msg_Id, and a repeated inbox commit. Ids ascend, so a leaf's index grows at its right end.
CREATE INDEX message_msg ON message (msg_id);

-- How long messages are cut for a channel.
ALTER TABLE channel
  ADD COLUMN long_fmt   smallint NOT NULL DEFAULT -1 CHECK (long_fmt IN (-1, 0, 8, 15)), -- Msg_Fmt of texts; -1 = the customer's; 8 where it cannot hold the text
  ADD COLUMN long_ref16 boolean NOT NULL DEFAULT false;                                  -- 16-bit references: headers of 7 octets

-- +goose Down
ALTER TABLE channel DROP COLUMN long_fmt, DROP COLUMN long_ref16;
DROP INDEX message_msg;
ALTER TABLE message DROP COLUMN segments, DROP COLUMN out_fmt, DROP COLUMN recipients, DROP COLUMN ref;
DROP TABLE message_segment, segment_wait, scheduled;
ALTER TABLE inbox DROP COLUMN at_time, DROP COLUMN ends, DROP COLUMN segments;
