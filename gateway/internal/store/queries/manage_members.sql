-- Members of group $1 (id or name) that are none of the channels $2 (ids or names)
SELECT m.group_id, m.channel_id FROM channel_group_member m JOIN channel_group g ON g.id = m.group_id LEFT JOIN channel c ON c.id = m.channel_id
 WHERE (g.name = $1 OR g.id::text = $1) AND NOT (m.channel_id::text = ANY($2::text[]) OR coalesce(c.name, '') = ANY($2::text[]))
