-- $1 token, $2 key
SELECT request, coalesce(status, 0), coalesce(etag, ''), coalesce(body, 'null') FROM admin_answer WHERE token_id = $1::int AND idem = $2::text
