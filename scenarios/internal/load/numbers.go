package load

import (
	"fmt"
	"math"

	"cmppgateway/scenarios/internal/spec"
)

const digits = 11

// numbers gives one enterprise's numbers: the carrier that is furthest behind
// its share comes next, its prefixes in turn. All enterprises draw from the
// same counters of their prefixes.
type numbers struct {
	carriers []*carrier
	given    []int
	n        int
}

type carrier struct {
	spec.Carrier
	used  []uint64 // by prefix
	turn  int
	first uint64 // offset of the first number, from the seed
}

func newNumbers(s *spec.Scenario) []*numbers {
	carriers := make([]*carrier, len(s.Carriers))
	for i, c := range s.Carriers {
		carriers[i] = &carrier{Carrier: c, used: make([]uint64, len(c.Prefixes)), first: s.Seed * 7919}
	}
	list := make([]*numbers, len(s.Enterprises))
	for i := range list {
		list[i] = &numbers{carriers: carriers, given: make([]int, len(carriers))}
	}
	return list
}

func (x *numbers) next() (number, name string) {
	x.n++
	at, most := 0, math.Inf(-1)
	for i, c := range x.carriers {
		if behind := c.Share*float64(x.n) - float64(x.given[i]); behind > most+1e-9 {
			at, most = i, behind
		}
	}
	x.given[at]++
	c := x.carriers[at]
	return c.next(), c.Name
}

func (c *carrier) next() string {
	i := c.turn % len(c.Prefixes)
	c.turn++
	prefix := c.Prefixes[i]
	width := digits - len(prefix)
	room := uint64(math.Pow10(width))
	n := (c.first + c.used[i]) % room
	c.used[i]++
	return fmt.Sprintf("%s%0*d", prefix, width, n)
}
