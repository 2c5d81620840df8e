package ismg

import (
	"time"

	"cmppgateway/simulator/simclock"
)

const (
	maxGatewayCode = 1<<22 - 1
	idsPerSecond   = 1 << 16
)

// shanghai is the zone of every CMPP wall-clock field.
var shanghai = time.FixedZone("Asia/Shanghai", 8*3600)

// idSource gives out Msg_Ids in the bit layout of CMPP 3.0 §8.4.3.2, each once.
// When a second's 65,536 are used up it borrows from the next one. Guarded by
// its account's lock.
type idSource struct {
	clock   *simclock.Clock
	gateway uint64
	second  int64 // Unix second of prefix
	prefix  uint64
	used    uint64
}

// next returns one id.
func (s *idSource) next(now int64) uint64 { return s.reserve(now, 1) }

// reserve returns the first of n consecutive ids, n at most 255.
func (s *idSource) reserve(now int64, n int) uint64 {
	second := s.clock.Time(now).Unix()
	switch {
	case second > s.second:
		s.start(second)
	case s.used+uint64(n) > idsPerSecond:
		s.start(s.second + 1)
	}
	id := s.prefix | s.used
	s.used += uint64(n)
	return id
}

func (s *idSource) start(second int64) {
	s.second, s.used = second, 0
	t := time.Unix(second, 0).In(shanghai)
	field := func(v, shift int) uint64 { return uint64(v) << shift }
	s.prefix = field(int(t.Month()), 60) | field(t.Day(), 55) | field(t.Hour(), 50) |
		field(t.Minute(), 44) | field(t.Second(), 38) | s.gateway<<16
}
