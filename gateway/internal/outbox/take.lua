-- Takes the oldest hints of a channel off its stream. A hint lost after this is found by the pull.
-- KEYS[1] stream of the channel
-- ARGV[1] most entries taken
-- Returns the batches, oldest first.
-- Called by Source.
local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[1])
local batches = {}
for i, entry in ipairs(entries) do
  redis.call('XDEL', KEYS[1], entry[1])
  batches[i] = entry[2][2]
end
return batches
