-- The oldest $3 rows above the floor $2 of each enterprise $1. No row locks: the enterprise is locked.
SELECT i.id, i.msg_id, i.session, i.accepted_at, i.valid_until, i.enterprise_id, i.app_id, i.weight, i.node, i.registered, i.fmt, i.udhi,
       i.pk_total, i.pk_number, i.dest, i.src, i.service, i.content, i.seq, i.at_time, i.ends, i.segments
  FROM unnest($1::int[], $2::bigint[]) AS a (enterprise, floor)
 CROSS JOIN LATERAL (SELECT * FROM inbox WHERE enterprise_id = a.enterprise AND pos > a.floor ORDER BY pos LIMIT $3) AS i
