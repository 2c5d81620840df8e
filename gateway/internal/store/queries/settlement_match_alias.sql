-- $1 Msg_Ids of the supplier
SELECT supplier_msg_id, submit_id FROM submit_alias WHERE supplier_msg_id = ANY($1::bigint[])
