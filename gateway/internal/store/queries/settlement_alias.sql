-- A supplier answered one SUBMIT with two Msg_Ids. $1 Msg_Ids, $2 submits, sorted
INSERT INTO submit_alias (supplier_msg_id, submit_id) SELECT * FROM unnest($1::bigint[], $2::bigint[]) ON CONFLICT DO NOTHING
