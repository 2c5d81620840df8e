-- In a fixed order: of several templates that a text follows, the first is noted.
SELECT id, enterprise_id, app_id, text, status FROM template WHERE status = 2 ORDER BY id
