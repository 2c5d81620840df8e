-- $1 numbers, $2 carriers (pairwise)
INSERT INTO number_override AS o (phone, carrier, source) SELECT DISTINCT ON (phone) phone, carrier, 1 FROM unnest($1::bigint[], $2::smallint[]) u (phone, carrier)
ON CONFLICT (phone) DO UPDATE SET carrier = excluded.carrier, source = 1, channel_id = NULL, at = clock_timestamp()
 WHERE (o.carrier, o.source) IS DISTINCT FROM (excluded.carrier, 1::smallint)
