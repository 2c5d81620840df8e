-- Rules whose end has come are left out; the keeper of temporary rules deletes them and has the settings loaded again.
SELECT prefix, carrier FROM prefix_rule WHERE until IS NULL OR until > now() ORDER BY prefix
