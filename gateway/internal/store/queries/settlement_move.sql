-- What becomes of locked messages. $1 sorted ids, $2..$3 their bounds, $4 old states, $5 old bills, then the new values: $6 states, $7 bills,
-- $8 settle entries (0 = as it was), $9 refund entries (0 = as it was), $10 channels, $11 attempts, $12 parts accepted, $13 parts final, $14 reasons,
-- $15 stats, $16 whether overdue
WITH moved AS (
  UPDATE message m SET state = u.state, bill = u.bill, settle_entry = CASE WHEN u.settle = 0 THEN m.settle_entry ELSE u.settle END,
         refund_entry = CASE WHEN u.refund = 0 THEN m.refund_entry ELSE u.refund END, channel_id = u.channel, attempt = u.attempt, acc = u.acc,
         fin = u.fin, reason = u.reason, stat = u.stat,
         final_at = CASE WHEN u.state IN (4, 5, 6, 7, 8) AND m.final_at IS NULL THEN now() ELSE m.final_at END,
         receipt_overdue_at = CASE WHEN u.overdue AND m.receipt_overdue_at IS NULL THEN now() ELSE m.receipt_overdue_at END
    FROM unnest($1::bigint[], $4::smallint[], $5::smallint[], $6::smallint[], $7::smallint[], $8::bigint[], $9::bigint[], $10::int[], $11::smallint[],
           $12::smallint[], $13::smallint[], $14::smallint[], $15::text[], $16::boolean[])
      AS u (id, was, was_bill, state, bill, settle, refund, channel, attempt, acc, fin, reason, stat, overdue)
   WHERE m.id = ANY($1::bigint[]) AND m.id BETWEEN $2 AND $3 AND m.id = u.id AND m.state = u.was AND m.bill = u.was_bill
  RETURNING 1)
SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM moved))
