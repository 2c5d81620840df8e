-- How long messages are cut.
SELECT id, long_fmt, long_ref16 FROM channel
