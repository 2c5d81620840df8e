-- Which of the enterprises $1 have inbox rows above their floor $2. A scalar sub-select: EXISTS would be turned into a
-- join that may walk the whole inbox.
SELECT e.id FROM unnest($1::int[], $2::bigint[]) AS e (id, floor)
 WHERE (SELECT i.pos FROM inbox i WHERE i.enterprise_id = e.id AND i.pos > e.floor LIMIT 1) IS NOT NULL
