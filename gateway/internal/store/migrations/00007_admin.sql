-- The admin API: who may, what was done, answers that were given, and prices with a time from which they hold.
--
-- Settings are written through the four functions below, whose table and columns come from the declarations of package
-- manage: a test compares these with the schema. They are for people, tens of calls a second, never for the message path.

-- +goose Up

-- Bearer tokens; only the SHA-256 of the secret half is kept.
CREATE TABLE admin_token (
  id         int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  role       smallint NOT NULL CHECK (role IN (1, 2, 4, 8)),             -- 1 viewer, 2 operator, 4 finance, 8 admin
  hash       bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at    timestamptz,                                                -- to the minute
  name       text NOT NULL
);
-- One row per change, in the change's own transaction. Secrets are cut before they come here.
CREATE TABLE admin_audit (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  token_id int NOT NULL DEFAULT 0,                                       -- 0: the configured token, or a command
  actor    text NOT NULL,
  role     text NOT NULL,
  remote   text NOT NULL DEFAULT '',
  action   text NOT NULL,                                                -- create, update, delete, or the name of an action
  resource text NOT NULL,
  key      text NOT NULL,
  idem     text NOT NULL DEFAULT '',
  before   jsonb,
  after    jsonb
);
CREATE INDEX admin_audit_key ON admin_audit (resource, key, id);
-- Answers by idempotency key. A key is the caller's for a week, then it may come again.
CREATE TABLE admin_answer (
  token_id int NOT NULL,
  idem     text NOT NULL,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  request  bytea NOT NULL,                                               -- SHA-256 of method, path and body
  status   smallint,
  etag     text,
  body     jsonb,
  PRIMARY KEY (token_id, idem)
);

-- A price may be planned: of all versions with since <= now the latest since counts, and among these the highest version.
-- NULL leaves the rule to the application.
ALTER TABLE price_history
  ADD charge_on smallint CHECK (charge_on IN (1, 2)),
  ADD refund_on smallint CHECK (refund_on IN (0, 1)),
  ADD unit_rule smallint CHECK (unit_rule IN (0, 1));

-- 3 deleted: as disabled, and only the past still speaks of it. Its row stays, for messages and entries point at it.
ALTER TABLE enterprise DROP CONSTRAINT enterprise_status_check, ADD CONSTRAINT enterprise_status_check CHECK (status IN (1, 2, 3));
ALTER TABLE application DROP CONSTRAINT application_status_check, ADD CONSTRAINT application_status_check CHECK (status IN (1, 2, 3));

-- +goose StatementBegin
CREATE FUNCTION admin_columns(tab regclass, doc jsonb) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT string_agg(quote_ident(k), ', ' ORDER BY k) FROM jsonb_object_keys(doc) k
$$;
-- +goose StatementEnd

-- admin_insert writes the columns of doc into a new row and returns the row.
-- +goose StatementBegin
CREATE FUNCTION admin_insert(tab regclass, doc jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  r jsonb;
  cols text := admin_columns(tab, doc);
BEGIN
  EXECUTE format('INSERT INTO %1$s AS t (%2$s) SELECT %2$s FROM jsonb_populate_record(NULL::%1$s, $1) RETURNING to_jsonb(t)', tab, cols)
    INTO STRICT r USING doc;
  RETURN r;
END $$;
-- +goose StatementEnd

-- admin_update writes the columns of doc into the row with the columns of key and returns it; NULL without such a row.
-- +goose StatementBegin
CREATE FUNCTION admin_update(tab regclass, key jsonb, doc jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  r jsonb;
BEGIN
  EXECUTE format('UPDATE %1$s t SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::%1$s, $1)) WHERE (%3$s) = (SELECT %3$s FROM jsonb_populate_record(NULL::%1$s, $2)) RETURNING to_jsonb(t)',
    tab, admin_columns(tab, doc), admin_columns(tab, key)) INTO r USING doc, key;
  RETURN r;
END $$;
-- +goose StatementEnd

-- admin_delete removes the row with the columns of key and returns it; NULL without such a row.
-- +goose StatementBegin
CREATE FUNCTION admin_delete(tab regclass, key jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  r jsonb;
BEGIN
  EXECUTE format('DELETE FROM %1$s t WHERE (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::%1$s, $1)) RETURNING to_jsonb(t)', tab, admin_columns(tab, key))
    INTO r USING key;
  RETURN r;
END $$;
-- +goose StatementEnd

-- admin_get is the row with the columns of key, locked until the transaction ends when lock is set; NULL without such a row.
-- +goose StatementBegin
CREATE FUNCTION admin_get(tab regclass, key jsonb, lock boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  r jsonb;
BEGIN
  EXECUTE format('SELECT to_jsonb(t) FROM %1$s t WHERE (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::%1$s, $1))%3$s', tab, admin_columns(tab, key),
    CASE WHEN lock THEN ' FOR UPDATE' ELSE '' END) INTO r USING key;
  RETURN r;
END $$;
-- +goose StatementEnd

-- admin_list is at most n rows in the order of the columns keys (descending when down), beginning after the row with the
-- columns of after ('{}': at the beginning), of those that have the columns of filter ('{}': all).
-- +goose StatementBegin
CREATE FUNCTION admin_list(tab regclass, keys text[], down boolean, after jsonb, filter jsonb, n int) RETURNS SETOF jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  cols text := (SELECT string_agg(quote_ident(k), ', ' ORDER BY i) FROM unnest(keys) WITH ORDINALITY u (k, i));
  dir  text := CASE WHEN down THEN ' DESC' ELSE '' END;
  cond text := '';
BEGIN
  IF after <> '{}' THEN
    cond := format(' AND (%1$s) %2$s (SELECT %1$s FROM jsonb_populate_record(NULL::%3$s, $1))', cols, CASE WHEN down THEN '<' ELSE '>' END, tab);
  END IF;
  IF filter <> '{}' THEN
    cond := cond || format(' AND (%1$s) = (SELECT %1$s FROM jsonb_populate_record(NULL::%2$s, $2))', admin_columns(tab, filter), tab);
  END IF;
  RETURN QUERY EXECUTE format('SELECT to_jsonb(t) FROM %1$s t WHERE true%2$s ORDER BY %3$s LIMIT $3', tab, cond,
    (SELECT string_agg(quote_ident(k) || dir, ', ' ORDER BY i) FROM unnest(keys) WITH ORDINALITY u (k, i))) USING after, filter, n;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION admin_list, admin_get, admin_delete, admin_update, admin_insert, admin_columns;
UPDATE enterprise SET status = 2 WHERE status = 3;
UPDATE application SET status = 2 WHERE status = 3;
ALTER TABLE enterprise DROP CONSTRAINT enterprise_status_check, ADD CONSTRAINT enterprise_status_check CHECK (status IN (1, 2));
ALTER TABLE application DROP CONSTRAINT application_status_check, ADD CONSTRAINT application_status_check CHECK (status IN (1, 2));
ALTER TABLE price_history DROP charge_on, DROP refund_on, DROP unit_rule;
DROP TABLE admin_answer, admin_audit, admin_token;
