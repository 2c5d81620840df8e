-- $1 messages, $2 enterprises, $3 applications, $4 keywords, $5 when the hold ends
INSERT INTO review_hold (message_id, enterprise_id, app_id, keyword_id, held_at, expires_at)
SELECT u.message_id, u.enterprise_id, u.app_id, u.keyword_id, now(), u.expires_at
  FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::timestamptz[]) AS u (message_id, enterprise_id, app_id, keyword_id, expires_at)
