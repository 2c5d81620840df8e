-- A changed price gets a new version. $1 id, $2 enterprise, $3 status, $4 version, $5 price, $6 unit_rule, $7 charge_on, $8 refund_on,
-- $9 lane, $10 max_connections, $11 window_size, $12 sp_id, $13 secret, $14 access_number, $15 name
INSERT INTO application AS a (id, enterprise_id, status, version, price, unit_rule, charge_on, refund_on, lane, max_connections, window_size, sp_id, secret, access_number, name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (id) DO UPDATE SET enterprise_id = excluded.enterprise_id, status = excluded.status, version = excluded.version, price = excluded.price,
  price_version = a.price_version + CASE WHEN a.price = excluded.price THEN 0 ELSE 1 END, unit_rule = excluded.unit_rule, charge_on = excluded.charge_on,
  refund_on = excluded.refund_on, lane = excluded.lane, max_connections = excluded.max_connections, window_size = excluded.window_size, sp_id = excluded.sp_id,
  secret = excluded.secret, access_number = excluded.access_number, name = excluded.name
 WHERE (a.enterprise_id, a.status, a.version, a.price, a.unit_rule, a.charge_on, a.refund_on, a.lane, a.max_connections, a.window_size, a.sp_id, a.secret, a.access_number, a.name)
    IS DISTINCT FROM (excluded.enterprise_id, excluded.status, excluded.version, excluded.price, excluded.unit_rule, excluded.charge_on, excluded.refund_on, excluded.lane,
    excluded.max_connections, excluded.window_size, excluded.sp_id, excluded.secret, excluded.access_number, excluded.name)
