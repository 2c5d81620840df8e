-- What was last sent to phones: the newest messages of each that may have reached it. States 6, 7, 8: rejected, expired, cancelled.
-- $1 phones, sorted, $2 since, $3 and $4 ids between which they are, $5 messages of each at most
SELECT m.phone, m.app_id, m.channel_id, m.src, m.service, coalesce(m.signature, '')
  FROM unnest($1::bigint[]) u (phone)
 CROSS JOIN LATERAL (
   SELECT x.phone, x.app_id, x.channel_id, x.src, x.service, x.signature, x.created_at FROM message x
    WHERE x.phone = u.phone AND x.created_at > $2 AND x.id BETWEEN $3 AND $4 AND x.state NOT IN (6, 7, 8)
    ORDER BY x.created_at DESC LIMIT $5) m
 ORDER BY m.phone, m.created_at DESC
