-- Members of group $1 that the file no longer has; $2 channels kept
DELETE FROM channel_group_member WHERE group_id = $1 AND channel_id <> ALL($2::int[])
