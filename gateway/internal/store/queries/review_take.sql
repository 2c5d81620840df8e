-- The holds that are decided now leave, locked in ascending order of their ids; one that is gone already is not returned.
-- $1 sorted messages
WITH h AS MATERIALIZED (SELECT message_id FROM review_hold WHERE message_id = ANY($1::bigint[]) ORDER BY message_id FOR UPDATE)
DELETE FROM review_hold WHERE message_id = ANY(ARRAY(SELECT message_id FROM h)) RETURNING message_id
