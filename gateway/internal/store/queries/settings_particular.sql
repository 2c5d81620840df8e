SELECT id, fee_user_type, fee_terminal, signature_by, report_format, report_msg_id, segment_reports, unit_rule FROM channel
