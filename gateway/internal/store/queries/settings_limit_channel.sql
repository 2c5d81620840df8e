SELECT id, backlog_max FROM channel WHERE backlog_max > 0
