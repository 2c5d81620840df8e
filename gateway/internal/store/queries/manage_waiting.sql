-- What waits of an application, counted up to a bound; its oldest delivery and newest login. $1 application, $2 bound
SELECT (SELECT count(*) FROM (SELECT 1 FROM inbox i JOIN application a ON a.id = $1::int AND i.enterprise_id = a.enterprise_id WHERE i.app_id = $1::int LIMIT $2) w),
       (SELECT count(*) FROM (SELECT 1 FROM delivery WHERE app_id = $1::int LIMIT $2) w),
       (SELECT min(created_at) FROM (SELECT created_at FROM delivery WHERE app_id = $1::int ORDER BY pos LIMIT 1) w),
       (SELECT max(last_at) FROM login_event WHERE app_id = $1::int AND status = 0)
