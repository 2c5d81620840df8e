-- $1 enterprises, $2 applications, $3 messages that passed; sorted by enterprise and application
INSERT INTO daily_use AS d (enterprise_id, day, app_id, messages)
SELECT u.enterprise_id, (now() AT TIME ZONE interval '8 hours')::date, u.app_id, u.messages FROM unnest($1::int[], $2::int[], $3::bigint[]) AS u (enterprise_id, app_id, messages)
ON CONFLICT (enterprise_id, day, app_id) DO UPDATE SET messages = d.messages + excluded.messages
