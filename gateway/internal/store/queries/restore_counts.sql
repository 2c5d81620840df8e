-- What is under way in the database as it is. Living processes wait in quarantine and hold no lease.
SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM scheduled WHERE due_at <= clock_timestamp()), (SELECT count(*) FROM submit_outbox WHERE state = 0), (SELECT count(*) FROM submit_outbox WHERE state = 1),
       (SELECT count(*) FROM delivery), (SELECT count(*) FROM node_lease WHERE instance IS NOT NULL AND lease_until > clock_timestamp() AND node <> $1::smallint)
