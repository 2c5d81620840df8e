-- Which of the enterprises $1 have inbox rows above their floor $2.
SELECT e.id FROM unnest($1::int[], $2::bigint[]) AS e (id, floor)
 WHERE EXISTS (SELECT 1 FROM inbox i WHERE i.enterprise_id = e.id AND i.pos > e.floor)
