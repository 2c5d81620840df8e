-- A channel, and the others of its account, locked until the change is made. $1 channel
SELECT id, account_id, enabled, carrier, desired_connections, window_size, rate_limit, warmup_seconds, drain_seconds,
       response_seconds, cooldown_seconds, access_number, append_extension, service_id, msg_src, fee_type, fee_code, name
  FROM channel WHERE account_id = (SELECT account_id FROM channel WHERE id = $1) ORDER BY id FOR UPDATE
