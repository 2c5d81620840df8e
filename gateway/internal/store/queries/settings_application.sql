SELECT id, enterprise_id, status, version, price, price_version, unit_rule, charge_on, refund_on, lane, max_connections,
       window_size, sp_id, secret, access_number, name FROM application
