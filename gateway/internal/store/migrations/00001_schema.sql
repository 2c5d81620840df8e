-- Schema V1. Rules that shape it (data §1, §3):
--   * Queue membership is the presence of a row: INSERT on entry, DELETE on exit, in small unpartitioned tables.
--   * The primary-key column is in no other index; queue order has its own column pos (= id).
--   * No foreign keys, no triggers, no partial index on a state column, no index on a column that changes on a hot path.
--   * Facts (message, submit, receipt) are partitioned by id (one leaf a UTC day), written once or twice.
--   * Fixed-width columns first, wide ones last: short WAL on HOT updates.
-- Ids: 41 bits of milliseconds since 2024-01-01 UTC, 8 bits node, 14 bits sequence (package message).
-- Money: bigint, 1/10,000 yuan. Times: timestamptz, one reading per transaction; leases compare with clock_timestamp().

-- +goose Up

-- must_be raises when a guard inside a pipelined transaction touched another number of rows than it must (data §1.10).
-- +goose StatementBegin
CREATE FUNCTION must_be(want bigint, got bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF want IS DISTINCT FROM got THEN
    RAISE EXCEPTION 'guard: % rows expected, % touched', want, got USING ERRCODE = 'P0001';
  END IF;
END $$;
-- +goose StatementEnd

------------------------------------------------------------------ leases
-- instance NULL = free and clean. lease_until passed with an instance = dead: its event shard and dispatched rows
-- must be taken over (epoch is raised first, so that the old process can no longer renew) before the number is free again.
CREATE TABLE node_lease (
  node        smallint PRIMARY KEY CHECK (node BETWEEN 1 AND 255),
  epoch       bigint NOT NULL,
  instance    uuid,
  adopter     smallint,                       -- the node that is taking over a dead one's shard
  ids_until   timestamptz NOT NULL,           -- no id of this node is later than this
  lease_until timestamptz NOT NULL,
  name        text NOT NULL DEFAULT '',       -- host, pid and roles, for people
  started_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE channel_lease (
  channel_id  int PRIMARY KEY,
  node        smallint NOT NULL,
  epoch       bigint NOT NULL,
  fence       bigint NOT NULL,
  lease_until timestamptz NOT NULL,
  down_since  timestamptz                     -- without a usable connection since; NULL while there is one
);

------------------------------------------------------------------ settings (written by seed and the admin API)
-- Every change raises the version in the same transaction; processes poll it and reload their snapshot.
CREATE TABLE settings_version (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version bigint NOT NULL);
INSERT INTO settings_version (version) VALUES (1);

CREATE TABLE enterprise (
  id     int PRIMARY KEY CHECK (id > 0),
  status smallint NOT NULL DEFAULT 1 CHECK (status IN (1, 2)),           -- 1 active, 2 disabled
  name   text NOT NULL UNIQUE
);
CREATE TABLE application (
  id              int PRIMARY KEY CHECK (id > 0),
  enterprise_id   int NOT NULL,
  status          smallint NOT NULL DEFAULT 1 CHECK (status IN (1, 2)),
  version         smallint NOT NULL DEFAULT 0,                           -- CMPP version pin, 0 = as the client says
  price           bigint NOT NULL CHECK (price >= 0),                    -- 1/10,000 yuan per unit
  price_version   int NOT NULL DEFAULT 1,
  unit_rule       smallint NOT NULL DEFAULT 0 CHECK (unit_rule IN (0, 1)),-- 0 cn-70-67, 1 gsm-160-153
  charge_on       smallint NOT NULL DEFAULT 1 CHECK (charge_on IN (1, 2)),-- 1 accept, 2 deliver
  refund_on       smallint NOT NULL DEFAULT 1 CHECK (refund_on IN (0, 1)),-- 0 never, 1 final failed receipt
  lane            smallint NOT NULL DEFAULT 1 CHECK (lane IN (0, 1, 2)), -- 0 verification, 1 notification, 2 marketing
  max_connections smallint NOT NULL DEFAULT 4 CHECK (max_connections BETWEEN 1 AND 64),
  window_size     smallint NOT NULL DEFAULT 32 CHECK (window_size BETWEEN 1 AND 256),
  sp_id           text NOT NULL UNIQUE CHECK (length(sp_id) BETWEEN 1 AND 6),
  secret          text NOT NULL,
  access_number   text NOT NULL DEFAULT '',                              -- prefix a customer's Src_Id must have; '' = any
  name            text NOT NULL
);
CREATE INDEX application_enterprise ON application (enterprise_id);
-- price history: which version was current from when (identity 3 checks the version stored on each message)
CREATE TABLE price_history (
  app_id int NOT NULL, price_version int NOT NULL, price bigint NOT NULL, since timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (app_id, price_version)
);
CREATE TABLE supplier_account (
  id              int PRIMARY KEY CHECK (id > 0),
  version         smallint NOT NULL DEFAULT 48 CHECK (version IN (32, 33, 48)),
  max_connections smallint NOT NULL CHECK (max_connections BETWEEN 1 AND 8),  -- confirmed by contract
  max_window      smallint NOT NULL CHECK (max_window BETWEEN 1 AND 64),
  max_tps         int NOT NULL DEFAULT 0 CHECK (max_tps >= 0),                -- 0 = none
  addr            text NOT NULL,                                              -- host:port
  sp_id           text NOT NULL CHECK (length(sp_id) BETWEEN 1 AND 6),
  secret          text NOT NULL,
  name            text NOT NULL UNIQUE
);
-- No CHECK on the six settings of capacity-plan §3.2: they are validated by the admin API, the control entry and the
-- pool; a stored value out of range keeps that channel from starting (refused, alert), not the gateway.
CREATE TABLE channel (
  id                    int PRIMARY KEY CHECK (id > 0),
  account_id            int NOT NULL,
  enabled               boolean NOT NULL DEFAULT true,
  carrier               smallint NOT NULL DEFAULT 0,
  desired_connections   smallint NOT NULL DEFAULT 2,
  window_size           smallint NOT NULL DEFAULT 16,
  rate_limit            int NOT NULL DEFAULT 0,                    -- TPS of this channel, 0 = the account's
  warmup_seconds        int NOT NULL DEFAULT 30,
  drain_seconds         int NOT NULL DEFAULT 60,
  response_seconds      int NOT NULL DEFAULT 60,
  cooldown_seconds      int NOT NULL DEFAULT 30,
  access_number         text NOT NULL,                             -- Src_Id base
  append_extension      boolean NOT NULL DEFAULT true,             -- append the customer's extension digits (21 in all)
  service_id            text NOT NULL DEFAULT '',
  msg_src               text NOT NULL DEFAULT '',                  -- '' = the account's sp_id
  fee_type              text NOT NULL DEFAULT '01',
  fee_code              text NOT NULL DEFAULT '0',
  name                  text NOT NULL UNIQUE
);
CREATE TABLE channel_group (id int PRIMARY KEY CHECK (id > 0), name text NOT NULL UNIQUE);
CREATE TABLE channel_group_member (
  group_id int NOT NULL, channel_id int NOT NULL, priority smallint NOT NULL DEFAULT 0, weight smallint NOT NULL DEFAULT 1 CHECK (weight > 0),
  PRIMARY KEY (group_id, channel_id)
);
CREATE TABLE application_route (
  app_id int NOT NULL, carrier smallint NOT NULL, group_id int NOT NULL, PRIMARY KEY (app_id, carrier)
);
CREATE TABLE prefix_rule (prefix text PRIMARY KEY CHECK (prefix ~ '^[0-9]{1,13}$'), carrier smallint NOT NULL);
-- classes of supplier result codes, per channel (channel_id 0 = for all): 1 retry-other, 2 retry-later, 3 reroute-carrier, 4 terminal
CREATE TABLE result_class (channel_id int NOT NULL, code int NOT NULL, class smallint NOT NULL CHECK (class BETWEEN 1 AND 4), PRIMARY KEY (channel_id, code));
INSERT INTO result_class VALUES (0, 8, 1);

------------------------------------------------------------------ money
-- available is written by top-up, freeze, release and refund only, as the last statement before COMMIT, accounts in
-- ascending id; a charge never touches it (data §1.8). account.id = enterprise.id.
CREATE TABLE account (
  id        int PRIMARY KEY,
  available bigint NOT NULL,
  credit    bigint NOT NULL DEFAULT 0 CHECK (credit >= 0),
  CONSTRAINT account_funds CHECK (available + credit >= 0)
) WITH (fillfactor = 10);
-- one row per batch and account; the messages of the batch point at it (freeze_entry, settle_entry, refund_entry)
CREATE TABLE account_entry (
  id         bigint PRIMARY KEY,
  account_id int NOT NULL,
  kind       smallint NOT NULL CHECK (kind BETWEEN 1 AND 5),            -- 1 top-up, 2 freeze, 3 charge, 4 release, 5 refund
  n          int NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  balance    bigint,                                                     -- available after it; NULL for a charge, which moves nothing
  idem       text                                                        -- top-ups: the caller's key
);
CREATE INDEX account_entry_account ON account_entry (account_id, at);
CREATE UNIQUE INDEX account_entry_idem ON account_entry (account_id, idem) WHERE idem IS NOT NULL;
CREATE TABLE ledger_exception (id bigint PRIMARY KEY, message_id bigint NOT NULL, amount bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), kind text NOT NULL);

------------------------------------------------------------------ queues
CREATE TABLE inbox (
  id            bigint PRIMARY KEY,
  pos           bigint NOT NULL,
  msg_id        bigint NOT NULL,              -- the customer's first Msg_Id, u64 as two's complement; recipient i has msg_id+i
  session       bigint NOT NULL,
  seq           bigint NOT NULL,              -- the customer's Sequence_Id
  accepted_at   timestamptz NOT NULL,
  valid_until   timestamptz,
  enterprise_id int NOT NULL,
  app_id        int NOT NULL,
  weight        int NOT NULL,                 -- PDUs: recipients × segments
  node          smallint NOT NULL,
  registered    smallint NOT NULL,
  fmt           smallint NOT NULL,
  udhi          smallint NOT NULL,
  pk_total      smallint NOT NULL,
  pk_number     smallint NOT NULL,
  dest          bytea NOT NULL,               -- recipients as the customer wrote them, joined by ','
  src           bytea NOT NULL,
  service       bytea NOT NULL,
  content       bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX inbox_queue ON inbox (enterprise_id, pos);

CREATE TABLE submit_outbox (
  id            bigint PRIMARY KEY,           -- submitId: one per message, attempt and part
  pos           bigint NOT NULL,
  message_id    bigint NOT NULL,
  retry_of      bigint NOT NULL DEFAULT 0,    -- submitId of the refused attempt
  batch         bigint,                       -- barrier batch id, chosen by its caller
  at            timestamptz,                  -- dispatched at
  due           timestamptz,                  -- not before (resend after 1 s, 2 s); NULL = now
  channel_id    int NOT NULL,
  enterprise_id int NOT NULL,
  attempt       smallint NOT NULL,            -- 1..max_submits
  part          smallint NOT NULL,            -- 1..parts
  parts         smallint NOT NULL,
  lane          smallint NOT NULL,
  state         smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),     -- 0 pending, 1 dispatched
  node          smallint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX submit_outbox_queue ON submit_outbox (channel_id, lane, pos);

CREATE TABLE unknown_submit (
  submit_id        bigint PRIMARY KEY,
  message_id       bigint NOT NULL,
  phone            bigint NOT NULL,
  dispatched_at    timestamptz NOT NULL,
  supplier_account int NOT NULL,
  channel_id       int NOT NULL,
  part             smallint NOT NULL,
  src              bytea NOT NULL,             -- Src_Id used upstream; '' = not known
  closed_at        timestamptz                 -- closed as not sent; kept as long as a late report may come
);
CREATE INDEX unknown_submit_match ON unknown_submit (supplier_account, phone);

CREATE TABLE receipt_parked (
  event_id         bigint PRIMARY KEY,
  supplier_msg_id  bigint NOT NULL,
  phone            bigint NOT NULL,
  at               timestamptz NOT NULL,
  next_try_at      timestamptz NOT NULL,
  supplier_account int NOT NULL,
  tries            smallint NOT NULL DEFAULT 0,
  stat             text NOT NULL,
  submit_time      text NOT NULL,
  done_time        text NOT NULL,
  src              text NOT NULL DEFAULT ''    -- Dest_Id of the report: the Src_Id used upstream
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX receipt_parked_msg ON receipt_parked (supplier_msg_id);
CREATE INDEX receipt_parked_due ON receipt_parked (next_try_at);

CREATE TABLE delivery (
  id             bigint PRIMARY KEY,          -- outer Msg_Id of the DELIVER, the same for all tries
  pos            bigint NOT NULL,
  message_id     bigint NOT NULL,
  msg_id         bigint NOT NULL,             -- the customer's Msg_Id of the SUBMIT (inner Msg_Id of the report)
  accept_session bigint NOT NULL,
  claim          bigint,
  accepted_at    timestamptz NOT NULL,        -- of the SUBMIT: only the accepting node may claim before +60 s
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  done_at        timestamptz,                 -- done time of the report
  lease          timestamptz,
  not_before     timestamptz,                 -- retry back-off
  app_id         int NOT NULL,
  kind           smallint NOT NULL CHECK (kind IN (1, 2)),               -- 1 receipt, 2 uplink
  accept_node    smallint NOT NULL,
  owner          smallint,
  attempts       smallint NOT NULL DEFAULT 0,
  fmt            smallint NOT NULL DEFAULT 0,
  udhi           smallint NOT NULL DEFAULT 0,
  stat           text NOT NULL DEFAULT '',
  dest           bytea NOT NULL,              -- receipt: the recipient as the customer wrote it; uplink: the phone
  src            bytea NOT NULL,              -- the customer's Src_Id
  service        bytea NOT NULL DEFAULT '',
  body           bytea NOT NULL DEFAULT ''    -- uplink content
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delivery_queue ON delivery (app_id, pos);

------------------------------------------------------------------ facts, one leaf a UTC day (created by the partition keeper)
CREATE TABLE message (
  id                 bigint NOT NULL,
  msg_id             bigint NOT NULL,          -- the customer's Msg_Id
  freeze_entry       bigint NOT NULL DEFAULT 0,
  settle_entry       bigint NOT NULL DEFAULT 0,
  refund_entry       bigint NOT NULL DEFAULT 0,
  price              bigint NOT NULL,
  phone              bigint NOT NULL,
  accept_session     bigint NOT NULL,
  accepted_at        timestamptz NOT NULL,
  created_at         timestamptz NOT NULL,
  valid_until        timestamptz,
  final_at           timestamptz,
  receipt_overdue_at timestamptz,
  enterprise_id      int NOT NULL,
  app_id             int NOT NULL,
  channel_id         int NOT NULL DEFAULT 0,
  units              int NOT NULL,
  price_version      int NOT NULL,
  state              smallint NOT NULL CHECK (state BETWEEN 1 AND 8),    -- message.State
  bill               smallint NOT NULL CHECK (bill BETWEEN 0 AND 4),     -- 0 none, 1 frozen, 2 charged, 3 released, 4 refunded
  charge_on          smallint NOT NULL,
  refund_on          smallint NOT NULL,
  attempt            smallint NOT NULL DEFAULT 1,
  parts              smallint NOT NULL DEFAULT 1,
  acc                smallint NOT NULL DEFAULT 0,                        -- parts accepted
  fin                smallint NOT NULL DEFAULT 0,                        -- parts final
  reason             smallint NOT NULL DEFAULT 0,                        -- message.Reason
  carrier            smallint NOT NULL DEFAULT 0,
  lane               smallint NOT NULL DEFAULT 1,
  registered         smallint NOT NULL,
  fmt                smallint NOT NULL,
  udhi               smallint NOT NULL,
  pk_total           smallint NOT NULL,
  pk_number          smallint NOT NULL,
  accept_node        smallint NOT NULL,
  stat               text NOT NULL DEFAULT '',
  dest               bytea NOT NULL,
  src                bytea NOT NULL,
  service            bytea NOT NULL,
  content            bytea NOT NULL,
  PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX message_phone ON message (phone, created_at);

-- INSERTed once, with the result (accepted, rejected, unknown); UPDATEd only unknown → accepted | rejected
CREATE TABLE submit (
  id              bigint NOT NULL,
  message_id      bigint NOT NULL,
  retry_of        bigint NOT NULL DEFAULT 0,
  supplier_msg_id bigint NOT NULL DEFAULT 0,   -- u64 as two's complement; indexed, not unique: suppliers reuse ids
  dispatched_at   timestamptz NOT NULL,
  resp_at         timestamptz,
  channel_id      int NOT NULL,
  account_id      int NOT NULL,
  enterprise_id   int NOT NULL,
  result          int NOT NULL DEFAULT 0,
  conn            int NOT NULL DEFAULT 0,
  attempt         smallint NOT NULL,
  part            smallint NOT NULL,
  parts           smallint NOT NULL,
  state           smallint NOT NULL CHECK (state IN (2, 3, 4)),          -- 2 accepted, 3 rejected, 4 unknown
  node            smallint NOT NULL,
  stat            text NOT NULL DEFAULT '',    -- final Stat of this part; only of messages with several parts
  PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX submit_supplier_msg ON submit (supplier_msg_id);

-- Append-only log of reports. (shard, seq) is given by the one writer of a core process, so commit order = seq order.
CREATE TABLE receipt (
  event_id         bigint NOT NULL,
  seq              bigint NOT NULL,
  supplier_msg_id  bigint NOT NULL,
  phone            bigint NOT NULL,
  at               timestamptz NOT NULL,
  supplier_account int NOT NULL,
  channel_id       int NOT NULL,
  shard            smallint NOT NULL,
  stat             text NOT NULL,
  submit_time      text NOT NULL,
  done_time        text NOT NULL,
  src              text NOT NULL DEFAULT '',
  PRIMARY KEY (event_id)
) PARTITION BY RANGE (event_id);
CREATE INDEX receipt_log ON receipt (shard, seq);

------------------------------------------------------------------ small
-- shard 0 is no shard: up to where the walk for overdue receipts has come, in message ids
CREATE TABLE receipt_cursor (shard smallint PRIMARY KEY, pos bigint NOT NULL) WITH (fillfactor = 10);
CREATE TABLE submit_alias (supplier_msg_id bigint NOT NULL, submit_id bigint NOT NULL, PRIMARY KEY (supplier_msg_id, submit_id));
CREATE TABLE submit_exception (id bigint PRIMARY KEY, submit_id bigint NOT NULL, supplier_msg_id bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), account_id int NOT NULL, kind text NOT NULL, detail text NOT NULL);
CREATE TABLE uplink (
  event_id bigint PRIMARY KEY, supplier_msg_id bigint NOT NULL, phone text NOT NULL, dest text NOT NULL, at timestamptz NOT NULL,
  supplier_account int NOT NULL, channel_id int NOT NULL, fmt smallint NOT NULL, udhi smallint NOT NULL, content bytea NOT NULL
);
CREATE TABLE uplink_key (
  supplier_account int NOT NULL, supplier_msg_id bigint NOT NULL, phone text NOT NULL, dest text NOT NULL, hash bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (supplier_account, supplier_msg_id, phone, dest, hash)
);
CREATE TABLE dead_letter (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), kind text NOT NULL, reason text NOT NULL, raw bytea NOT NULL);

------------------------------------------------------------------ views for people
CREATE VIEW submit_record AS
  SELECT id AS submit_id, message_id, NULLIF(retry_of, 0) AS retry_of_submit_record_id, channel_id, attempt, part, parts,
         state + 0 AS state, 0 AS result, 0::bigint AS supplier_msg_id, at AS dispatched_at, NULL::timestamptz AS resp_at FROM submit_outbox
  UNION ALL
  SELECT id, message_id, NULLIF(retry_of, 0), channel_id, attempt, part, parts, state, result, supplier_msg_id, dispatched_at, resp_at FROM submit;
CREATE VIEW billing_entry AS
  SELECT id AS message_id, enterprise_id, app_id, units, price, units * price AS amount, bill, freeze_entry, settle_entry, refund_entry
    FROM message WHERE bill > 0;

-- +goose Down
DROP VIEW billing_entry, submit_record;
DROP TABLE dead_letter, uplink_key, uplink, submit_exception, submit_alias, receipt_cursor, receipt, submit, message, delivery,
  receipt_parked, unknown_submit, submit_outbox, inbox, ledger_exception, account_entry, account, result_class, prefix_rule,
  application_route, channel_group_member, channel_group, channel, supplier_account, price_history, application, enterprise,
  settings_version, channel_lease, node_lease;
DROP FUNCTION must_be;
