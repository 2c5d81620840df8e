-- Keeps the newest $1 rows of each account and the newest $2 of all that name no account. The table stays that small, so it is read whole.
DELETE FROM login_event e USING (
  SELECT sp_id, address, status, cause, app_id, row_number() OVER (PARTITION BY CASE WHEN app_id > 0 THEN sp_id ELSE '' END, app_id > 0 ORDER BY last_at DESC) AS place
    FROM login_event) x
 WHERE (e.sp_id, e.address, e.status, e.cause) = (x.sp_id, x.address, x.status, x.cause) AND x.place > CASE WHEN x.app_id > 0 THEN $1::int ELSE $2::int END
