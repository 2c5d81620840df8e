-- How many reports are parked, by supplier account, and since when.
SELECT supplier_account, count(*), min(at) FROM receipt_parked GROUP BY supplier_account
