-- At the start of a node: what an earlier life of it had claimed. $1 node
UPDATE delivery SET claim = NULL, owner = NULL, lease = NULL WHERE owner = $1
