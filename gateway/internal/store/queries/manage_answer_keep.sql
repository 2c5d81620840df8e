-- $1 token, $2 key, $3 status, $4 etag, $5 body
UPDATE admin_answer SET status = $3::smallint, etag = $4, body = $5::jsonb WHERE token_id = $1::int AND idem = $2::text
