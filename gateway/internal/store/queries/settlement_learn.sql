-- Numbers that another carrier serves than the prefix says: its supplier took what the other refused as not its own. What an
-- operator has entered stays. $1 numbers, sorted and different, $2 carriers, $3 channels that refused them
INSERT INTO number_override (phone, carrier, source, channel_id)
SELECT u.phone, u.carrier, 2, u.channel FROM unnest($1::bigint[], $2::smallint[], $3::int[]) AS u (phone, carrier, channel)
ON CONFLICT (phone) DO UPDATE SET carrier = excluded.carrier, source = 2, channel_id = excluded.channel_id, at = clock_timestamp()
 WHERE number_override.source <> 3 AND number_override.carrier <> excluded.carrier
