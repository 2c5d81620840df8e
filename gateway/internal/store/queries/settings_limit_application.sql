SELECT id, max_tps, link_tps, vendor_status FROM application WHERE max_tps > 0 OR link_tps > 0 OR vendor_status
