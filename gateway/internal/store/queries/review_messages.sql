-- The messages of holds, locked in ascending order, with whether their senders may send now. $1 sorted ids, $2..$3 their bounds
SELECT m.id, m.msg_id, m.price, m.phone, m.accept_session, m.accepted_at, m.created_at, m.valid_until, m.enterprise_id, m.app_id, m.channel_id, m.units, m.parts,
       m.carrier, m.lane, m.registered, m.accept_node, m.dest, m.src, m.service, coalesce(m.signature, ''),
       coalesce((SELECT e.status = 1 FROM enterprise e WHERE e.id = m.enterprise_id), false), coalesce((SELECT a.status = 1 FROM application a WHERE a.id = m.app_id), false)
  FROM message m WHERE m.id = ANY($1::bigint[]) AND m.id BETWEEN $2 AND $3 AND m.state = 1 AND m.bill = 1 ORDER BY m.id FOR NO KEY UPDATE OF m
