-- $1 id, $2 account_id, $3 enabled, $4 carrier, $5 desired_connections, $6 window_size, $7 rate_limit, $8 warmup, $9 drain, $10 response, $11 cooldown,
-- $12 access_number, $13 append_extension, $14 service_id, $15 msg_src, $16 fee_type, $17 fee_code, $18 name
INSERT INTO channel AS c (id, account_id, enabled, carrier, desired_connections, window_size, rate_limit, warmup_seconds, drain_seconds, response_seconds, cooldown_seconds,
  access_number, append_extension, service_id, msg_src, fee_type, fee_code, name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id, enabled = excluded.enabled, carrier = excluded.carrier, desired_connections = excluded.desired_connections,
  window_size = excluded.window_size, rate_limit = excluded.rate_limit, warmup_seconds = excluded.warmup_seconds, drain_seconds = excluded.drain_seconds,
  response_seconds = excluded.response_seconds, cooldown_seconds = excluded.cooldown_seconds, access_number = excluded.access_number, append_extension = excluded.append_extension,
  service_id = excluded.service_id, msg_src = excluded.msg_src, fee_type = excluded.fee_type, fee_code = excluded.fee_code, name = excluded.name
 WHERE (c.account_id, c.enabled, c.carrier, c.desired_connections, c.window_size, c.rate_limit, c.warmup_seconds, c.drain_seconds, c.response_seconds, c.cooldown_seconds,
    c.access_number, c.append_extension, c.service_id, c.msg_src, c.fee_type, c.fee_code, c.name) IS DISTINCT FROM
   (excluded.account_id, excluded.enabled, excluded.carrier, excluded.desired_connections, excluded.window_size, excluded.rate_limit, excluded.warmup_seconds, excluded.drain_seconds,
    excluded.response_seconds, excluded.cooldown_seconds, excluded.access_number, excluded.append_extension, excluded.service_id, excluded.msg_src, excluded.fee_type, excluded.fee_code, excluded.name)
