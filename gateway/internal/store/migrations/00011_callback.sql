-- The callback: how events of a type travel, and dead letters that can be offered again (capacity-plan §6.3, §6.5).

-- +goose Up
-- A type without a row travels in batches. Changing it raises settings_version, as for every setting.
CREATE TABLE callback_mode (
  event_type text PRIMARY KEY CHECK (event_type IN ('submit_segment_result', 'submit_result', 'receipt_intake', 'uplink', 'dead_letter')),
  mode       smallint NOT NULL CHECK (mode IN (0, 1, 2))                 -- 0 batch, 1 shadow, 2 single
);
ALTER TABLE dead_letter
  ADD COLUMN account     int NOT NULL DEFAULT 0,                         -- supplier account, 0 = not told
  ADD COLUMN replayed_at timestamptz;                                    -- offered again and taken

-- +goose Down
ALTER TABLE dead_letter DROP COLUMN account, DROP COLUMN replayed_at;
DROP TABLE callback_mode;
