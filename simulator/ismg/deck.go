package ismg

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

const (
	statDelivered   = "DELIVRD"
	statUndelivered = "UNDELIV"
	maxBlock        = 1 << 20
	resultFlow      = 8 // flow control (CMPP 3.0 §8.4.3.2)
)

// Card is what a deck deals to a message.
type Card uint8

// The cards, in the words of DeckSpec.
const (
	Plain Card = iota
	Result8First
	Refused
	NoReceipt
	ReceiptFailed
	ReceiptEarly
	ReceiptTwice
	ReceiptContradict
	ReceiptElsewhere
	RespLate
	RespTwice
	RespSilent
	RespWrongSeq
)

var cardNames = [...]string{
	"plain", "result_8_first", "results", "no_receipt", "receipt_failed", "receipt_early",
	"receipt_twice", "receipt_contradict", "receipt_elsewhere", "resp_late", "resp_twice",
	"resp_silent", "resp_wrong_seq",
}

// String returns the card's name in a profile.
func (c Card) String() string {
	if int(c) < len(cardNames) {
		return cardNames[c]
	}
	return fmt.Sprintf("card(%d)", uint8(c))
}

// MarshalText returns the card's name in a profile.
func (c Card) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Fate is what happens to one attempt at one message.
type Fate struct {
	Card Card
	// Result of the SUBMIT_RESP; 0 accepts.
	Result uint32
	// Stat of the (first) report; empty when there is none.
	Stat string
}

// Place is where a message sits: which deck, and which card of it.
type Place struct {
	// Group of messages that share decks, such as an enterprise.
	Group uint64
	// Block within the group.
	Block uint64
	// Index within the block, 0 to block size − 1.
	Index int
}

// PlaceBy returns the default placing: (key − base) divided by the block size.
// Keys below base are placed from 0 on, too.
func PlaceBy(base uint64, block int) func(key uint64) Place {
	size := uint64(max(block, 1))
	return func(key uint64) Place {
		if key >= base {
			key -= base
		}
		return Place{Block: key / size, Index: int(key % size)}
	}
}

// Deck deals fates. It is a pure function of its seed and specification: the
// same key and attempt meet the same fate on any connection, in any order, in
// any process. Safe for concurrent use.
type Deck struct {
	seed  uint64
	block int
	cards []cardCount
	place func(key uint64) Place
}

type cardCount struct {
	path  string // within the deck section
	count int
	fate  Fate
}

// NewDeck returns the deck of a valid specification. A nil place means
// PlaceBy(0, block).
func NewDeck(seed uint64, spec DeckSpec, place func(key uint64) Place) *Deck {
	d := &Deck{seed: seed, block: spec.block(), cards: spec.cards(), place: place}
	if place == nil {
		d.place = PlaceBy(0, d.block)
	}
	return d
}

// Fate returns what attempt (from 0) at the message meets.
func (d *Deck) Fate(key uint64, attempt int) Fate {
	p := d.place(key)
	drawn := shuffled(mix(d.seed, p.Group, p.Block), d.block, p.Index)
	for i := range d.cards {
		c := &d.cards[i]
		if drawn >= c.count {
			drawn -= c.count
			continue
		}
		if c.fate.Card == Result8First && attempt > 0 {
			return Fate{Card: Result8First, Stat: statDelivered}
		}
		return c.fate
	}
	return Fate{Card: Plain, Stat: statDelivered}
}

func (d *DeckSpec) block() int {
	if d.Block == 0 {
		return 1000
	}
	return d.Block
}

// cards lists the cards that are not plain in a fixed order.
func (d *DeckSpec) cards() []cardCount {
	cards := []cardCount{
		{"result_8_first", d.Result8First, Fate{Card: Result8First, Result: resultFlow}},
		{"no_receipt", d.NoReceipt, Fate{Card: NoReceipt}},
		{"receipt_early", d.ReceiptEarly, Fate{Card: ReceiptEarly, Stat: statDelivered}},
		{"receipt_twice", d.ReceiptTwice, Fate{Card: ReceiptTwice, Stat: statDelivered}},
		{"receipt_contradict", d.ReceiptContradict, Fate{Card: ReceiptContradict, Stat: statDelivered}},
		{"receipt_elsewhere", d.ReceiptElsewhere, Fate{Card: ReceiptElsewhere, Stat: statDelivered}},
		{"resp_late", d.RespLate, Fate{Card: RespLate, Stat: statDelivered}},
		{"resp_twice", d.RespTwice, Fate{Card: RespTwice, Stat: statDelivered}},
		{"resp_silent", d.RespSilent, Fate{Card: RespSilent, Stat: statDelivered}},
		{"resp_wrong_seq", d.RespWrongSeq, Fate{Card: RespWrongSeq, Stat: statDelivered}},
	}
	for _, code := range slices.Sorted(maps.Keys(d.Results)) {
		cards = append(cards, cardCount{fmt.Sprintf("results.%d", code), d.Results[code], Fate{Card: Refused, Result: code}})
	}
	for _, stat := range slices.Sorted(maps.Keys(d.ReceiptFailed)) {
		cards = append(cards, cardCount{"receipt_failed." + stat, d.ReceiptFailed[stat], Fate{Card: ReceiptFailed, Stat: stat}})
	}
	return cards
}

// shuffled returns where index lands in the shuffle of 0…n−1 that seed stands
// for: a four-round Feistel network over the next even number of bits, walked
// until it is back inside. A keyed permutation needs neither memory nor a lock,
// however sparse the numbers are.
func shuffled(seed uint64, n, index int) int {
	half := (bits.Len(uint(n-1)) + 1) / 2
	mask := uint64(1)<<half - 1
	x := uint64(index)
	for {
		left, right := x>>half, x&mask
		for round := range uint64(4) {
			left, right = right, left^mix(seed, right, round)&mask
		}
		x = left<<half | right
		if x < uint64(n) {
			return int(x)
		}
	}
}

// mix hashes three words into one (the finaliser of splitmix64, chained).
func mix(a, b, c uint64) uint64 {
	h := a
	for _, v := range [...]uint64{b, c} {
		h += 0x9e3779b97f4a7c15 + v
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
