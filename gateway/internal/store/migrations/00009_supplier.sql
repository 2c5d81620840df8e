-- The supplier side: what is particular about a channel, which channels are out of the candidates, and what is stopped.

-- +goose Up

-- Particulars of a channel. The six settings of capacity-plan §3.2 and the login (version, window, rate) were there before.
ALTER TABLE channel
  ADD fee_user_type   smallint NOT NULL DEFAULT 2 CHECK (fee_user_type IN (0, 1, 2, 3)), -- Fee_UserType: 0 recipient, 1 originator, 2 SP, 3 fee_terminal
  ADD fee_terminal    text     NOT NULL DEFAULT '' CHECK (fee_terminal ~ '^[0-9]{0,21}$'), -- Fee_terminal_Id, for fee_user_type 3
  ADD signature_by    smallint NOT NULL DEFAULT 0 CHECK (signature_by IN (0, 1)),        -- 0 the text carries 【…】, 1 the supplier puts it there: it is taken off the text
  ADD report_format   smallint NOT NULL DEFAULT 0 CHECK (report_format IN (0, 1, 2)),    -- layout of a status report: 0 by its length, 1 number of 21 octets, 2 of 32
  ADD report_msg_id   smallint NOT NULL DEFAULT 0 CHECK (report_msg_id IN (0, 1)),       -- Msg_Id in reports: 0 as in SUBMIT_RESP, 1 octets reversed
  ADD segment_reports smallint NOT NULL DEFAULT 0 CHECK (segment_reports IN (0, 1, 2)),  -- parts of a long message that are reported: 0 all, 1 first, 2 last
  ADD unit_rule       smallint NOT NULL DEFAULT 0 CHECK (unit_rule IN (0, 1));           -- how the supplier counts units: 0 cn-70-67, 1 gsm-160-153

-- The presence of a row takes a channel out of the candidates while another one can serve: its supplier refuses too much.
-- Written by the process that holds the channel's lease. Channels without a usable connection are known by channel_lease.
CREATE TABLE channel_breaker (
  channel_id int PRIMARY KEY,
  state      smallint NOT NULL CHECK (state IN (1, 2)),                  -- 1 open: out; 2 half-open: a part of the messages tries it
  node       smallint NOT NULL,
  trips      int NOT NULL DEFAULT 1,                                     -- in a row: each doubles the time it stays open
  since      timestamptz NOT NULL DEFAULT clock_timestamp(),
  until      timestamptz NOT NULL,                                       -- half-open from then on
  reason     text NOT NULL DEFAULT ''                                    -- for people
);

-- What an operator has stopped. Nothing of it is dispatched, from the next reading of the settings on (250 ms).
-- scope 1 platform (id 0), 2 enterprise, 3 application, 4 channel.
-- mode 1 hold: commands wait, and age; those of a channel go to another candidate if there is one.
-- mode 2 release: commands leave the queue, their messages end with STATUS (a channel's: ROUTE when no other candidate is
-- left) and their money is released.
-- A stopped channel keeps its connections, so that receipts come; a disabled one does not. Applications are released, not
-- held: the queue does not know them.
CREATE TABLE dispatch_stop (
  scope  smallint NOT NULL CHECK (scope IN (1, 2, 3, 4)),
  id     int NOT NULL DEFAULT 0 CHECK ((scope = 1) = (id = 0) AND id >= 0),
  mode   smallint NOT NULL CHECK (mode IN (1, 2) AND (scope <> 3 OR mode = 2)),
  since  timestamptz NOT NULL DEFAULT clock_timestamp(),
  reason text NOT NULL DEFAULT '',
  PRIMARY KEY (scope, id)
);

-- Names the process that holds a node number so that another one on the same machine can see that it is gone: boot, pid
-- namespace, pid and its start time. Empty: not known.
ALTER TABLE node_lease ADD process text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE node_lease DROP process;
DROP TABLE dispatch_stop, channel_breaker;
ALTER TABLE channel DROP fee_user_type, DROP fee_terminal, DROP signature_by, DROP report_format, DROP report_msg_id, DROP segment_reports, DROP unit_rule;
