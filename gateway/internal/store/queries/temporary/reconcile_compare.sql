-- Every submit of the account around the day beside its line of the statement: by Msg_Id and recipient, the first with
-- the first where an id came twice. Submits without an id (unknown, refused) and lines without a partner come alone.
-- $1 account, $2 and $3 lowest and highest submit id (they prune the leaves), $4 from, $5 to (dispatched)
WITH t AS (SELECT *, row_number() OVER (PARTITION BY msg_id, phone ORDER BY at, line) AS k FROM theirs),
o AS (
  SELECT s.id, s.message_id, s.supplier_msg_id, s.channel_id, s.part, s.parts, s.state, s.result, s.dispatched_at,
         m.phone, m.carrier, m.fmt, m.udhi, m.content,
         row_number() OVER (PARTITION BY s.supplier_msg_id, m.phone ORDER BY s.dispatched_at, s.id) AS k
    FROM submit s JOIN message m ON m.id = s.message_id
   WHERE s.account_id = $1::int AND s.id BETWEEN $2::bigint AND $3::bigint AND m.id BETWEEN $2::bigint AND $3::bigint
     AND s.dispatched_at >= $4::timestamptz AND s.dispatched_at < $5::timestamptz)
SELECT o.id, o.message_id, o.supplier_msg_id, o.channel_id, o.part, o.parts, o.state, o.result, o.dispatched_at, o.phone, o.carrier,
       o.fmt, o.udhi, o.content,
       t.line, t.msg_id, t.phone, t.at, t.accepted, t.result, t.units, t.src
  FROM o FULL JOIN t ON t.msg_id = o.supplier_msg_id AND t.phone = o.phone AND t.k = o.k AND t.msg_id <> 0
