SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(held_at)), 0)::float8 FROM review_hold
