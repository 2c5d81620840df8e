-- A message that a review refused did not pass: the counter of its day goes back. Locked in order first. $1 enterprises,
-- $2 applications, $3 days in China, $4 how many
WITH u AS MATERIALIZED (
  SELECT enterprise_id, app_id, day::date AS day, messages FROM unnest($1::int[], $2::int[], $3::text[], $4::bigint[]) AS u (enterprise_id, app_id, day, messages)),
l AS MATERIALIZED (
  SELECT d.enterprise_id, d.day, d.app_id, u.messages FROM u JOIN daily_use d USING (enterprise_id, day, app_id) ORDER BY 1, 2, 3 FOR UPDATE OF d)
UPDATE daily_use d SET messages = greatest(d.messages - l.messages, 0)
  FROM l WHERE d.enterprise_id = l.enterprise_id AND d.day = l.day AND d.app_id = l.app_id
