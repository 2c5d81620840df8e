SELECT prefix, carrier FROM prefix_rule ORDER BY prefix
