-- $1 id, $2 version, $3 max_connections, $4 max_window, $5 max_tps, $6 addr, $7 sp_id, $8 secret, $9 name
INSERT INTO supplier_account AS s (id, version, max_connections, max_window, max_tps, addr, sp_id, secret, name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO UPDATE SET version = excluded.version, max_connections = excluded.max_connections, max_window = excluded.max_window, max_tps = excluded.max_tps,
  addr = excluded.addr, sp_id = excluded.sp_id, secret = excluded.secret, name = excluded.name
 WHERE (s.version, s.max_connections, s.max_window, s.max_tps, s.addr, s.sp_id, s.secret, s.name) IS DISTINCT FROM
       (excluded.version, excluded.max_connections, excluded.max_window, excluded.max_tps, excluded.addr, excluded.sp_id, excluded.secret, excluded.name)
