-- Members in a fixed order: a choice by weight depends on it.
SELECT g.id, coalesce(m.channel_id, 0), coalesce(c.account_id, 0), coalesce(m.priority, 0), coalesce(m.weight, 0), coalesce(c.enabled, false)
  FROM channel_group g LEFT JOIN channel_group_member m ON m.group_id = g.id LEFT JOIN channel c ON c.id = m.channel_id
 ORDER BY g.id, m.channel_id
