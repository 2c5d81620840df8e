SELECT message_id, msg_id, number, registered FROM message_segment ORDER BY message_id, msg_id
