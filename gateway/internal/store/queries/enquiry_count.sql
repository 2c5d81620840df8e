-- What QUERY asks for. $1 application, $2..$3 message ids of the day, $4 one Service_Id only, $5 which, $6 whether the day is
-- today: what waits before it is a message counts then
WITH m AS (
  SELECT count(*) AS users, coalesce(sum((1 - (recipients - 1)) * greatest(segments, 1)), 0) AS submits,
         count(*) FILTER (WHERE acc > 0) AS sent, count(*) FILTER (WHERE acc = 0 AND state IN (1, 2, 3)) AS waiting, count(*) FILTER (WHERE acc = 0 AND state >= 4) AS failed
    FROM message WHERE id BETWEEN $2 AND $3 AND app_id = $1 AND (NOT $4::boolean OR service = $5::bytea)),
w AS (
  SELECT count(*) AS submits, coalesce(sum(weight), 0) AS users FROM (
    SELECT weight, service FROM inbox WHERE enterprise_id = (SELECT enterprise_id FROM application WHERE id = $1) AND app_id = $1
    UNION ALL SELECT weight, service FROM segment_wait WHERE app_id = $1
    UNION ALL SELECT weight, service FROM scheduled WHERE app_id = $1) x
   WHERE $6::boolean AND (NOT $4::boolean OR service = $5::bytea)),
u AS (
  SELECT count(*) AS users, count(d.message_id) AS waiting FROM uplink LEFT JOIN (SELECT message_id FROM delivery WHERE app_id = $1 AND kind = 2) d ON d.message_id = event_id
   WHERE event_id BETWEEN $2 AND $3 AND uplink.app_id = $1 AND NOT $4::boolean)
SELECT m.submits + w.submits, m.users + w.users, m.sent, m.waiting + w.users, m.failed, u.users - u.waiting, u.waiting, 0::bigint FROM m, w, u
