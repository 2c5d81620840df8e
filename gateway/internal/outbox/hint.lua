-- Offers one batch of commands as a hint.
-- KEYS[1] stream of the channel
-- ARGV[1] most entries on the stream, ARGV[2] the batch
-- Returns 1, or 0 when the stream is at its bound: the edge pulls the rows from PostgreSQL.
-- Called by RedisHinter.Hint.
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('XADD', KEYS[1], '*', 'd', ARGV[2])
return 1
