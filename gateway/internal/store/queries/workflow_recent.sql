-- When messages to a number passed, newest first, up to $3 of the last $4 seconds; numbers without any are left out. What
-- was frozen has passed (bill above 0), unless a review refused it. Exact, because one worker at a time serves an
-- enterprise (data §1.20).
-- $1 enterprises, $2 phones, $3 how many, $4 seconds, $5..$6 bounds of the message ids
SELECT u.enterprise_id, u.phone, r.at
  FROM unnest($1::int[], $2::bigint[], $3::int[], $4::int[]) AS u (enterprise_id, phone, most, seconds)
 CROSS JOIN LATERAL (SELECT ARRAY(
         SELECT m.created_at FROM message m
          WHERE m.phone = u.phone AND m.created_at > now() - u.seconds * interval '1 second' AND m.enterprise_id = u.enterprise_id AND m.bill > 0 AND m.state <> 6
            AND m.id BETWEEN $5 AND $6
          ORDER BY m.created_at DESC LIMIT u.most) AS at OFFSET 0) AS r
 WHERE r.at <> '{}'
