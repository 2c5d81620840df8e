-- Parked reports whose submit has just become known are tried at once. A lower number of tries tells the sweeper that has
-- read the row before that it must not put it off. $1 Msg_Ids of the supplier, sorted
UPDATE receipt_parked SET next_try_at = clock_timestamp(), tries = least(tries, 0) - 1 WHERE supplier_msg_id = ANY($1::bigint[])
