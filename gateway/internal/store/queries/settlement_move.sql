-- What becomes of locked messages that change alike; the values are scalars, so no join compares N² rows. $1 sorted ids, $2..$3 their bounds, $4 old state, $5 old bill,
-- then what is new: $6 state, $7 bill, $8 settle entry, $9 refund entry, $10 channel (0 each = as it was), $11 attempts, $12 parts accepted, $13 parts final (to add),
-- $14 reason, $15 stat, $16 whether the receipt is overdue
WITH moved AS (
  UPDATE message SET state = $6::smallint, bill = $7::smallint, settle_entry = CASE WHEN $8::bigint = 0 THEN settle_entry ELSE $8 END,
         refund_entry = CASE WHEN $9::bigint = 0 THEN refund_entry ELSE $9 END, channel_id = CASE WHEN $10::int = 0 THEN channel_id ELSE $10 END,
         attempt = attempt + $11::smallint, acc = acc + $12::smallint, fin = fin + $13::smallint, reason = $14::smallint, stat = $15::text,
         final_at = CASE WHEN $6::smallint IN (4, 5, 6, 7, 8) THEN coalesce(final_at, now()) END,
         receipt_overdue_at = CASE WHEN $16::boolean THEN coalesce(receipt_overdue_at, now()) END
   WHERE id = ANY($1::bigint[]) AND id BETWEEN $2 AND $3 AND state = $4::smallint AND bill = $5::smallint
  RETURNING 1)
SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM moved))
