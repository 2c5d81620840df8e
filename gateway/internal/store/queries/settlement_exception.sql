-- What contradicts what is known; the same contradiction once. $1 ids, $2 submits, $3 Msg_Ids of the supplier, $4 accounts, $5 kinds, $6 details
INSERT INTO submit_exception (id, submit_id, supplier_msg_id, account_id, kind, detail)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::text[], $6::text[]) ON CONFLICT (id) DO NOTHING
