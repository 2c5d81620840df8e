-- Submits to numbers that are known to be refused, oldest first, for people: it reads the submits of all days. $1 numbers, sorted
SELECT m.phone, s.account_id, s.dispatched_at FROM message m JOIN submit s ON s.message_id = m.id
 WHERE m.phone = ANY($1::bigint[]) AND s.state = 3 ORDER BY s.dispatched_at
