-- Whether node $1 still has rows that its process may have written to a supplier.
SELECT EXISTS (SELECT FROM submit_outbox WHERE node = $1 AND state = 1)
