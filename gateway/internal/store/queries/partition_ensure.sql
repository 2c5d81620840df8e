-- One leaf of one fact table. $1 parent, $2 leaf, $3 lowest id, $4 first id after, $5 fillfactor.
SELECT ensure_leaf($1, $2, $3, $4, $5)
