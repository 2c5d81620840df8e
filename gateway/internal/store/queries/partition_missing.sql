-- Which of the leaves $2 of the parents $1 (pairwise) are not attached.
SELECT u.leaf FROM unnest($1::text[], $2::text[]) u(parent, leaf)
 WHERE NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = to_regclass(u.parent) AND i.inhrelid = to_regclass(u.leaf))
 ORDER BY u.leaf
