-- Which of these Msg_Ids have parked reports: later ones about them wait behind. $1 Msg_Ids of the supplier, sorted
SELECT DISTINCT supplier_msg_id FROM receipt_parked WHERE supplier_msg_id = ANY($1::bigint[])
