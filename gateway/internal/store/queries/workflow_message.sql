INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, valid_until, enterprise_id, app_id, channel_id, units, price_version,
  state, bill, charge_on, refund_on, reason, carrier, lane, registered, fmt, udhi, pk_total, pk_number, accept_node, stat, dest, src, service, content,
  created_at, final_at)
SELECT u.*, now(), CASE WHEN u.state IN (6, 7) THEN now() END
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::timestamptz[], $8::timestamptz[], $9::int[], $10::int[], $11::int[],
    $12::int[], $13::int[], $14::smallint[], $15::smallint[], $16::smallint[], $17::smallint[], $18::smallint[], $19::smallint[], $20::smallint[], $21::smallint[],
    $22::smallint[], $23::smallint[], $24::smallint[], $25::smallint[], $26::smallint[], $27::text[], $28::bytea[], $29::bytea[], $30::bytea[], $31::bytea[])
  AS u (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, valid_until, enterprise_id, app_id, channel_id, units, price_version,
  state, bill, charge_on, refund_on, reason, carrier, lane, registered, fmt, udhi, pk_total, pk_number, accept_node, stat, dest, src, service, content)
