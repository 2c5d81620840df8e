-- The account of a channel. $1 account
SELECT id, version, max_connections, max_window, max_tps, addr, sp_id, secret, name FROM supplier_account WHERE id = $1
