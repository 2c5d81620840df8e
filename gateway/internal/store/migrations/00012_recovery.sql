-- What tells a database that went back in time: restored from a backup, or a standby promoted (data, problem "restore").

-- +goose Up
CREATE TABLE installation (
  only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  id                uuid NOT NULL DEFAULT gen_random_uuid(),             -- names this installation's mark in Redis
  beat              bigint NOT NULL DEFAULT 0,                           -- raised every second by every process, then told to Redis
  system_identifier bigint NOT NULL,                                     -- of the cluster that the rows were written in
  timeline          int NOT NULL,
  quarantined_at    timestamptz,                                         -- nothing runs until `gateway recover --confirm`
  reason            text NOT NULL DEFAULT ''
);

-- +goose Down
DROP TABLE installation;
