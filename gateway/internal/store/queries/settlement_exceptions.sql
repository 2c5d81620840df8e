-- Exceptions for people, newest first. $1 kind ('' = all), $2 since, $3 most rows
SELECT id, at, kind, submit_id, supplier_msg_id, account_id, detail, candidates
  FROM submit_exception WHERE at >= $2 AND ($1::text = '' OR kind = $1::text) ORDER BY at DESC, id DESC LIMIT $3
