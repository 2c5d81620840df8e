-- The next free id. $1 table, whose key is id; called under manage_lock.
SELECT coalesce(max((r ->> 'id')::bigint), 0) + 1 FROM admin_list($1::text::regclass, '{id}', true, '{}', '{}', 1) r
