-- Writes one batch of events to the copy of a queue, and removes entries whose events the core has accepted.
-- KEYS[1] epoch of the shard, KEYS[2] stream of the queue
-- ARGV[1] the epoch the caller last set, ARGV[2] the batch or '', ARGV[3..] ids of entries to remove
-- Returns the id of the new entry, '' without a batch, or 'EPOCH' when this Redis is not the one the caller wrote to:
-- it lost or restored something, and everything held must be written again (data §1.2).
-- Called by Queue.copyBatch.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 'EPOCH'
end
for i = 3, #ARGV do
  redis.call('XDEL', KEYS[2], ARGV[i])
end
if ARGV[2] == '' then
  return ''
end
return redis.call('XADD', KEYS[2], '*', 'd', ARGV[2])
