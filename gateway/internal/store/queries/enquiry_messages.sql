-- The messages that a SUBMIT became, one for each recipient; for a segment, those of its long message. $1 application, $2 Msg_Id, $3 lowest id
-- (+ 0: the key is no access path beside the index on msg_id)
WITH first AS MATERIALIZED (
  SELECT id, msg_id, recipients FROM message WHERE msg_id = $2 AND id + 0 >= $3 AND app_id = $1
  UNION
  SELECT m.id, m.msg_id, m.recipients
    FROM (SELECT message_id FROM message_segment WHERE msg_id = $2 AND message_id + 0 >= $3 AND app_id = $1) s
   CROSS JOIN LATERAL (SELECT id, msg_id, recipients FROM message WHERE id = s.message_id OFFSET 0) m)
SELECT DISTINCT o.id FROM first f
 CROSS JOIN LATERAL (SELECT id FROM message WHERE msg_id = ANY(ARRAY(SELECT f.msg_id + i FROM generate_series(0, f.recipients - 1) i)) AND id + 0 >= $3 AND app_id = $1 OFFSET 0) o
 ORDER BY 1
