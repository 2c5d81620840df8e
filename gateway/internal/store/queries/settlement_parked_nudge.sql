-- Parked reports whose submit has just become known are tried at once. A lower number of tries tells the sweeper that has
-- read the row before that it must not put it off. Rows are locked in ascending order, as the sweeper does; ordered by an
-- expression, since by the key alone the planner would walk all parked reports in its order. $1 Msg_Ids of the supplier, sorted
UPDATE receipt_parked SET next_try_at = clock_timestamp(), tries = least(tries, 0) - 1
 WHERE event_id = ANY(ARRAY(SELECT event_id FROM receipt_parked WHERE supplier_msg_id = ANY($1::bigint[]) ORDER BY event_id + 0 FOR UPDATE))
