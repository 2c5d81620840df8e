-- $1 group, $2 channel, $3 priority, $4 weight
INSERT INTO channel_group_member AS m (group_id, channel_id, priority, weight) VALUES ($1, $2, $3, $4)
ON CONFLICT (group_id, channel_id) DO UPDATE SET priority = excluded.priority, weight = excluded.weight
 WHERE (m.priority, m.weight) <> (excluded.priority, excluded.weight)
