-- Gauges; counted no further than $1.
SELECT (SELECT count(*) FROM (SELECT 1 FROM uplink_queue LIMIT $1) q), (SELECT count(*) FROM (SELECT 1 FROM uplink_segment WHERE NOT sent LIMIT $1) s),
       (SELECT count(*) FROM (SELECT 1 FROM uplink_unmatched LIMIT $1) u), (SELECT count(*) FROM (SELECT 1 FROM uplink_unmatched WHERE opt_out LIMIT $1) u),
       coalesce((SELECT extract(epoch FROM clock_timestamp() - t.at)::float8 FROM uplink t WHERE t.event_id = (SELECT event_id FROM uplink_queue ORDER BY pos LIMIT 1)), 0)
