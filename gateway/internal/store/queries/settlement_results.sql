-- Dispatched commands with an answer, or known to have none, leave the queue and become submits (data T4, statement A). Only
-- dispatched rows move, so every submit moves once however often its result is offered. $1 sorted submitIds
DELETE FROM submit_outbox WHERE id = ANY($1::bigint[]) AND state = 1
RETURNING id, message_id, retry_of, channel_id, attempt, part, at, enterprise_id, parts
