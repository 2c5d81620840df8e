SELECT submit_id, message_id, phone, dispatched_at FROM unknown_submit
