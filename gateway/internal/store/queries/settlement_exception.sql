-- What contradicts what is known; the same contradiction once. $1 ids, $2 submits, $3 Msg_Ids of the supplier, $4 accounts, $5 kinds, $6 details,
-- $7 submits that could be meant, joined by ','
INSERT INTO submit_exception (id, submit_id, supplier_msg_id, account_id, kind, detail, candidates)
SELECT u.id, u.submit, u.msg, u.account, u.kind, u.detail, string_to_array(u.candidates, ',')::bigint[]
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::text[]) AS u (id, submit, msg, account, kind, detail, candidates)
ON CONFLICT (id) DO NOTHING
