-- Keys so old that no supplier repeats their uplinks any more. $1 age, $2 rows at most
DELETE FROM uplink_key WHERE (supplier_account, supplier_msg_id, phone, dest, hash) IN (
  SELECT supplier_account, supplier_msg_id, phone, dest, hash FROM uplink_key WHERE at < clock_timestamp() - $1::interval ORDER BY at LIMIT $2)
