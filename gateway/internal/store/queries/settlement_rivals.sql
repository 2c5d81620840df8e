-- Messages to the numbers of reports whose own answers are still to come: such a report may be about one of them, so it binds
-- no unknown submit yet. $1 numbers, sorted, $2 how old messages may be
SELECT phone, id, channel_id FROM message
 WHERE phone = ANY($1::bigint[]) AND created_at >= $2 AND (state = 1 OR state = 2 AND acc < parts AND fin < parts)
