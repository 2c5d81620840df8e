-- The Msg_Ids of statement lines that belong to submits known already, with the supplier account. $1 Msg_Ids, sorted
SELECT supplier_msg_id, account_id FROM submit WHERE supplier_msg_id = ANY($1::bigint[]) AND state = 2
UNION
SELECT a.supplier_msg_id, s.account_id FROM submit_alias a JOIN submit s ON s.id = a.submit_id WHERE a.supplier_msg_id = ANY($1::bigint[])
