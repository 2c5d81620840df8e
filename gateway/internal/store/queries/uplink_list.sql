-- Nobody's uplinks, oldest first, with their contents. $1 behind which id, $2 rows at most
SELECT u.event_id, u.at, u.supplier_account, u.reason, u.opt_out, u.phone, u.dest, t.fmt, t.udhi, t.content
  FROM uplink_unmatched u JOIN uplink t ON t.event_id = u.event_id
 WHERE u.event_id > $1 ORDER BY u.event_id LIMIT $2
