-- $1 reconciliation
SELECT kind, submit_id, message_id, supplier_msg_id, phone, line, channel_id, at, ours, theirs
  FROM reconciliation_difference WHERE reconciliation_id = $1::bigint ORDER BY no
