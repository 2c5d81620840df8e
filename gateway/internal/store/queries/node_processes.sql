-- Processes that hold node numbers and are not being adopted. $1 a node that is left out.
SELECT node, process FROM node_lease WHERE instance IS NOT NULL AND adopter IS NULL AND process <> '' AND node <> $1
