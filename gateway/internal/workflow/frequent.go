package workflow

import (
	"sync"
	"time"

	"cmppgateway/gateway/internal/policy"
)

const (
	frequentMost = 10_000      // numbers remembered; more are asked about each time
	frequentTime = time.Minute // how long an answer is trusted: a review may refuse a message that had passed
)

// frequent remembers the numbers that have had all the messages they may get. A customer who sends to such a number in a
// loop fills it with refused messages, and the question about it would read them all, batch after batch. While a number is
// full nothing passes, in whichever process, so what is remembered stays true until the oldest message leaves its window.
type frequent struct {
	mu      sync.Mutex
	numbers map[policy.Number]fullNumber
}

type fullNumber struct {
	limits policy.Limits
	at     []time.Time // when messages passed, newest first
	until  time.Time
}

// full is when messages passed to a number that is known to be full at now; nil when it is not known.
func (f *frequent) full(n policy.Number, limits policy.Limits, now time.Time) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.numbers[n]
	if !ok || known.limits != limits || !now.Before(known.until) || !limits.Full(known.at, now) {
		return nil
	}
	return known.at
}

// note remembers a number that the database says is full at now. Times must be of committed messages.
func (f *frequent) note(n policy.Number, limits policy.Limits, at []time.Time, now time.Time) {
	if !limits.Full(at, now) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.numbers == nil {
		f.numbers = make(map[policy.Number]fullNumber)
	}
	if len(f.numbers) >= frequentMost {
		for other, known := range f.numbers {
			if !now.Before(known.until) {
				delete(f.numbers, other)
			}
		}
		if len(f.numbers) >= frequentMost {
			return
		}
	}
	f.numbers[n] = fullNumber{limits: limits, at: at, until: now.Add(frequentTime)}
}
