-- Closed as not sent: kept, so that a report that comes after all is recognised. $1 submitIds, sorted
UPDATE unknown_submit SET closed_at = now() WHERE submit_id = ANY($1::bigint[])
