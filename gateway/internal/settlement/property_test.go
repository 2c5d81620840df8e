package settlement_test

import (
	"testing"

	"pgregory.net/rapid"

	"cmppgateway/gateway/internal/event"
)

// A batch of results leaves the same behind when it is applied twice, and in any order.
func TestBatchesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		var results []event.SubmitResult
		for range rapid.IntRange(1, 8).Draw(rt, "messages") {
			m := b.send(t, spec{})
			state := rapid.SampledFrom([]string{event.Accepted, event.Rejected, event.Unknown}).Draw(rt, "state")
			code := uint32(0)
			if state == event.Rejected {
				code = rapid.SampledFrom([]uint32{8, 13, 20}).Draw(rt, "code")
			}
			msgID := uint64(0)
			if state == event.Accepted {
				msgID = uint64(m.submit)
			}
			results = append(results, b.result(m, state, code, msgID))
		}
		if out := b.apply(t, rapid.Permutation(results).Draw(rt, "first")...); out.Moved != len(results) {
			rt.Fatalf("%+v of %d", out, len(results))
		}
		if out := b.apply(t, rapid.Permutation(results).Draw(rt, "again")...); out.Moved != 0 || out.Repeated != len(results) || out.Resent != 0 {
			rt.Fatalf("again: %+v of %d", out, len(results))
		}
	})
	b.books(t)
}
