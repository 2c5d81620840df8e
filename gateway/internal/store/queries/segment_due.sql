-- Sets are looked at at another time. $1 ids, $2 when (pairwise)
UPDATE segment_wait s SET due_at = u.due_at FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, due_at) WHERE s.id = ANY($1::bigint[]) AND s.id = u.id
