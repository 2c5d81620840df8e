package routing

import (
	"math/bits"
	"slices"
)

// Candidate is one channel of a group.
type Candidate struct {
	ChannelID int32
	Account   int32 // supplier account that owns the channel
	Priority  int16 // layer: 0 is primary, 1 backup, and so on; the lowest layer with a usable channel serves all
	Weight    int16 // share of the layer's messages, relative to the others in it; below 1 means no share
	Enabled   bool
	Health    Health `db:"-"` // changes without the settings
}

// Health of a candidate.
type Health uint8

// Healths.
const (
	Well  Health = iota
	Out          // taken only when no other candidate is left
	Trial        // was out: one message in trialPart tries it
)

const trialPart = 16

// serves says whether the message that key names may go there while others can serve.
func (c *Candidate) serves(key uint64) bool {
	return c.Health == Well || c.Health == Trial && mix(key^trialSalt)%trialPart == 0
}

// Group is the channels that an application may use for one carrier. It is not changed once it is in use.
type Group struct {
	ID         int32
	Candidates []Candidate
}

// Pick returns the channel for the message that key names: of the lowest layer that has an enabled channel not in tried,
// one of those channels by weight. Channels without weight are taken only when no other in the layer is left, and then
// in equal shares. Channels that are out are passed over while another one is left, in whatever layer; so are those on trial,
// by most messages. The choice is a function of the group (the order of its candidates included), key and tried alone:
// the same after a restart and in another process. It returns false when no channel is left. It does not allocate.
func (g *Group) Pick(key uint64, tried []int32) (Candidate, bool) {
	if c, ok := g.pick(key, tried, true); ok {
		return c, true
	}
	return g.pick(key, tried, false)
}

func (g *Group) pick(key uint64, tried []int32, well bool) (Candidate, bool) {
	var layer int16
	var weights, count, skipped uint64
	for i := range g.Candidates {
		c := &g.Candidates[i]
		if slices.Contains(tried, c.ChannelID) {
			skipped++
			continue
		}
		if !c.Enabled || well && !c.serves(key) || count > 0 && c.Priority > layer {
			continue
		}
		if count == 0 || c.Priority < layer {
			layer, weights, count = c.Priority, 0, 0
		}
		count++
		weights += c.share()
	}
	if count == 0 {
		return Candidate{}, false
	}

	// Every retry draws anew: with one draw per key, all messages refused by the first channel would fall on the second.
	draw := mix(key + skipped*goldenGamma)
	even := weights == 0
	total := weights
	if even {
		total = count
	}
	point, _ := bits.Mul64(draw, total) // uniform in [0, total)
	for _, c := range g.Candidates {
		if !c.Enabled || well && !c.serves(key) || c.Priority != layer || slices.Contains(tried, c.ChannelID) {
			continue
		}
		share := c.share()
		if even {
			share = 1
		}
		if point < share {
			return c, true
		}
		point -= share
	}
	return Candidate{}, false
}

// Enabled is the candidates that are not disabled, in the order of the group.
func (g *Group) Enabled() []Candidate {
	var usable []Candidate
	for _, c := range g.Candidates {
		if c.Enabled {
			usable = append(usable, c)
		}
	}
	return usable
}

func (c *Candidate) share() uint64 { return uint64(max(c.Weight, 0)) }

const (
	goldenGamma = 0x9E3779B97F4A7C15
	trialSalt   = 0xD1B54A32D192ED03 // who tries is independent of which channel is drawn
)

// mix is the output function of SplitMix64: neighbouring keys give unrelated values.
func mix(x uint64) uint64 {
	x += goldenGamma
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
