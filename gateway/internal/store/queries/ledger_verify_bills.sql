-- A message's billing state must agree with its pointers: frozen has a freeze only, charged and released a settlement,
-- refunded a settlement and a refund, none has nothing.
SELECT id, bill, freeze_entry, settle_entry, refund_entry FROM message
 WHERE (freeze_entry <> 0, settle_entry <> 0, refund_entry <> 0) IS DISTINCT FROM
       (bill > 0, bill IN (2, 3, 4), bill = 4)
 ORDER BY id LIMIT 100
