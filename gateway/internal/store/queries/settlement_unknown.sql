-- $1 submitIds, sorted, $2 messages, $3 phones, $4 dispatched_at, $5 supplier accounts, $6 channels, $7 parts, $8 Src_Ids
INSERT INTO unknown_submit (submit_id, message_id, phone, dispatched_at, supplier_account, channel_id, part, src)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::int[], $6::int[], $7::smallint[], $8::bytea[])
ON CONFLICT (submit_id) DO NOTHING
