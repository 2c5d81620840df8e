-- The customers' entrance: rates at four levels, backlog ceilings, allowed addresses, and who tried to log in.
--
-- Rates are messages a second, counted as recipients × segments, and hold in each process by itself. 0 is no limit.

-- +goose Up

ALTER TABLE enterprise ADD max_tps int NOT NULL DEFAULT 0 CHECK (max_tps BETWEEN 0 AND 1000000);
ALTER TABLE application
  ADD max_tps       int NOT NULL DEFAULT 0 CHECK (max_tps BETWEEN 0 AND 1000000),          -- all its connections together
  ADD link_tps      int NOT NULL DEFAULT 0 CHECK (link_tps BETWEEN 0 AND 1000000),         -- each connection
  ADD vendor_status boolean NOT NULL DEFAULT false;  -- CONNECT_RESP 55, 56, 57 (system, account, address) where 5 is the standard's
-- Commands waiting for a channel: from this many on, SUBMITs that would have to wait there are answered with result 8. 0 is no limit.
ALTER TABLE channel ADD backlog_max int NOT NULL DEFAULT 0 CHECK (backlog_max BETWEEN 0 AND 10000000);
CREATE TABLE platform_limit (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  max_tps     int NOT NULL DEFAULT 0 CHECK (max_tps BETWEEN 0 AND 1000000),
  backlog_max int NOT NULL DEFAULT 0 CHECK (backlog_max BETWEEN 0 AND 100000000)           -- inbox rows and commands together
);
INSERT INTO platform_limit DEFAULT VALUES;

-- Networks an application may log in from; none: from anywhere.
CREATE TABLE application_address (
  app_id  int NOT NULL,
  network cidr NOT NULL,
  note    text NOT NULL DEFAULT '',
  PRIMARY KEY (app_id, network)
);

-- Logins and refusals. One row for each account, address, status and cause, with the last time and how often: attackers can
-- make it no longer than the sweep allows, which keeps the newest rows of every account, and of all unknown accounts together.
CREATE TABLE login_event (
  sp_id    text NOT NULL,                            -- Source_Addr as it came, what is not printable replaced; '' when no CONNECT was understood
  address  inet NOT NULL,
  status   smallint NOT NULL,                        -- of CONNECT_RESP, 0 is a login; -1: closed without an answer
  cause    text NOT NULL,                            -- a fixed text for each cause; '' for a login
  first_at timestamptz NOT NULL,
  last_at  timestamptz NOT NULL,
  n        bigint NOT NULL,
  app_id   int NOT NULL DEFAULT 0,                   -- 0: no such account
  node     smallint NOT NULL,                        -- of the last one, as the columns below
  version  smallint NOT NULL,                        -- octet of the CONNECT
  stamp    text NOT NULL,                            -- Timestamp of the CONNECT, MMDDHHMMSS
  detail   text NOT NULL,                            -- figures belonging to the cause
  PRIMARY KEY (sp_id, address, status, cause)
);

-- +goose Down
DROP TABLE login_event, application_address, platform_limit;
ALTER TABLE channel DROP backlog_max;
ALTER TABLE application DROP max_tps, DROP link_tps, DROP vendor_status;
ALTER TABLE enterprise DROP max_tps;
