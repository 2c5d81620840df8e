-- The lowest clean number whose ids do not reach past $1: ids go on after ids_until, and must stay near the clock.
SELECT node, ids_until FROM node_lease WHERE instance IS NULL AND ids_until <= $1 ORDER BY node LIMIT 1
