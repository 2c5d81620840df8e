SELECT max_tps, backlog_max FROM platform_limit
