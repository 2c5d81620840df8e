-- The lines of a statement that belong to the account, gone with the transaction.
CREATE TEMPORARY TABLE theirs (
  line int NOT NULL, msg_id bigint NOT NULL, phone bigint NOT NULL, at timestamptz, accepted boolean NOT NULL, result int NOT NULL, units int NOT NULL,
  src text NOT NULL
) ON COMMIT DROP
