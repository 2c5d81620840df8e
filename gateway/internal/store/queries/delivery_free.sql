-- At the start of a node, and when a dead one was adopted: what its process had claimed. $1 node
UPDATE delivery SET claim = NULL, owner = NULL, lease = NULL WHERE owner = $1
