-- T8. $1 ids, sorted. An acknowledgement counts whatever the claim has become.
DELETE FROM delivery WHERE id = ANY($1::bigint[])
