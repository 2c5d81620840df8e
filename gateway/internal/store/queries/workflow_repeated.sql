-- Which contents an application has sent to a number within $4 seconds. $1 applications, $2 phones, $3 contents,
-- $4 seconds, $5..$6 bounds of the message ids
SELECT u.app_id, u.phone, u.content
  FROM unnest($1::int[], $2::bigint[], $3::bytea[], $4::int[]) AS u (app_id, phone, content, seconds)
 WHERE (SELECT 1 FROM message m
         WHERE m.phone = u.phone AND m.created_at > now() - u.seconds * interval '1 second' AND m.app_id = u.app_id AND m.content = u.content AND m.bill > 0 AND m.state <> 6
           AND m.id BETWEEN $5 AND $6
         ORDER BY m.created_at DESC LIMIT 1) IS NOT NULL
