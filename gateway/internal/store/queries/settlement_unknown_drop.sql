-- $1 submitIds, sorted
DELETE FROM unknown_submit WHERE submit_id = ANY($1::bigint[])
