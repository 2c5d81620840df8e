-- $1 reconciliation, $2 numbers, $3 kinds, $4 submits, $5 messages, $6 Msg_Ids, $7 phones, $8 lines, $9 channels, $10 times, $11 ours, $12 theirs
INSERT INTO reconciliation_difference (reconciliation_id, no, kind, submit_id, message_id, supplier_msg_id, phone, line, channel_id, at, ours, theirs)
SELECT $1::bigint, u.* FROM unnest($2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::int[], $9::int[], $10::timestamptz[], $11::text[], $12::text[]) u
