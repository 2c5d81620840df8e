-- What this session's commits and this server's disk writes are worth, and the server's clock.
SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'), clock_timestamp()
