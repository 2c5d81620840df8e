INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, valid_until, enterprise_id, app_id, channel_id, units, price_version,
  state, bill, charge_on, refund_on, reason, carrier, lane, registered, fmt, udhi, pk_total, pk_number, accept_node, stat, dest, src, service, content,
  signature, template_id, keyword_id, parts, segments, out_fmt, recipients, ref, created_at, final_at)
SELECT u.id, u.msg_id, u.freeze_entry, u.price, u.phone, u.accept_session, u.accepted_at, u.valid_until, u.enterprise_id, u.app_id, u.channel_id, u.units, u.price_version,
  u.state, u.bill, u.charge_on, u.refund_on, u.reason, u.carrier, u.lane, u.registered, u.fmt, u.udhi, u.pk_total, u.pk_number, u.accept_node, u.stat, u.dest, u.src, u.service, u.content,
  nullif(u.signature, ''), nullif(u.template_id, 0), nullif(u.keyword_id, 0), u.parts, u.segments, u.out_fmt, u.recipients, u.ref, now(), CASE WHEN u.state IN (6, 7, 8) THEN now() END
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::timestamptz[], $8::timestamptz[], $9::int[], $10::int[], $11::int[],
    $12::int[], $13::int[], $14::smallint[], $15::smallint[], $16::smallint[], $17::smallint[], $18::smallint[], $19::smallint[], $20::smallint[], $21::smallint[],
    $22::smallint[], $23::smallint[], $24::smallint[], $25::smallint[], $26::smallint[], $27::text[], $28::bytea[], $29::bytea[], $30::bytea[], $31::bytea[],
    $32::text[], $33::int[], $34::int[], $35::smallint[], $36::smallint[], $37::smallint[], $38::smallint[], $39::int[])
  AS u (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, valid_until, enterprise_id, app_id, channel_id, units, price_version,
  state, bill, charge_on, refund_on, reason, carrier, lane, registered, fmt, udhi, pk_total, pk_number, accept_node, stat, dest, src, service, content, signature, template_id, keyword_id,
  parts, segments, out_fmt, recipients, ref)
