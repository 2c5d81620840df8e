-- A new version of the price. The application's own row follows when it holds from now on; a rule left out stays as it is at the
-- time from which the new price holds. $1 application, $2 price, $3 charge_on, $4 refund_on, $5 unit_rule, $6 since, $7 in the future
WITH a AS (SELECT id, charge_on, refund_on, unit_rule, price_version FROM application WHERE id = $1::int),
old AS (
  SELECT h.charge_on, h.refund_on, h.unit_rule FROM price_history h
   WHERE h.app_id = $1::int AND h.since <= $6::timestamptz ORDER BY h.since DESC, h.price_version DESC LIMIT 1),
v AS (SELECT greatest(a.price_version, coalesce((SELECT max(price_version) FROM price_history WHERE app_id = $1::int), 0)) + 1 AS n FROM a),
made AS (
  INSERT INTO price_history (app_id, price_version, price, since, charge_on, refund_on, unit_rule)
  SELECT a.id, v.n, $2::bigint, $6::timestamptz, coalesce($3::smallint, old.charge_on, a.charge_on), coalesce($4::smallint, old.refund_on, a.refund_on),
         coalesce($5::smallint, old.unit_rule, a.unit_rule)
    FROM a CROSS JOIN v LEFT JOIN old ON true
  RETURNING *),
now AS (
  UPDATE application t SET price = made.price, price_version = made.price_version, charge_on = made.charge_on, refund_on = made.refund_on, unit_rule = made.unit_rule
    FROM made WHERE t.id = made.app_id AND NOT $7::boolean)
SELECT to_jsonb(made) FROM made
