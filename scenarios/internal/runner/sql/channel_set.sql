-- What an operator changes of a channel while it runs: $2 enabled, $3 connections, $4 window.
UPDATE channel SET enabled = $2, desired_connections = $3, window_size = $4 WHERE id = $1
