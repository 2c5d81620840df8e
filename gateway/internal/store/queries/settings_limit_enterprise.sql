SELECT id, max_tps FROM enterprise WHERE max_tps > 0
