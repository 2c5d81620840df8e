package settlement_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// Guards behind guards: the locks and decisions before them keep these from ever being needed, so each is proved alone. All
// of them raise, since a pipelined COMMIT looks at no row counts (data §1.10).
func TestGuards(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.send(t, spec{parts: 2})
	b.accept(t, m, 7)
	b.report(t, 1, 7, m.phone, delivered)
	b.settle(t)
	raises := func(what, sql string, args ...any) {
		t.Helper()
		if _, err := b.Exec(t.Context(), sql, args...); store.Code(err) != store.CodeGuard {
			t.Errorf("%s: %v, want the guard's %s", what, err, store.CodeGuard)
		}
	}
	move := func(state message.State, bill message.Bill) []any {
		return []any{[]int64{m.message}, m.message, m.message, state, bill, message.Failed, message.Released, int64(9), int64(0), int32(0), int16(0), int16(0), int16(0), message.NoReason, "x", false}
	}
	raises("a message in another state", store.SettlementMove, move(message.Checked, message.Charged)...)
	raises("a message billed otherwise", store.SettlementMove, move(message.Submitted, message.Frozen)...)
	raises("a part that has ended", store.SettlementPart, []int64{m.submit}, m.submit, m.submit, "UNDELIV")
	raises("a cursor that goes back", store.SettlementCursorMove, b.node.Number, int64(1))
	raises("a refused part that is gone", store.SettlementRefusedDrop, []int64{m.message}, 1)
	b.want(t, m, message.Submitted, message.Charged, delivered)

	// A parked receipt that was nudged while the sweeper had it stays due.
	b.report(t, 1, 8, m.phone, delivered)
	b.settle(t)
	b.exec(t, store.SettlementParkedNudge, []int64{8})
	event := b.count(t, `SELECT event_id FROM receipt_parked`)
	b.exec(t, store.SettlementParkedLater, []int64{event}, int32(time.Hour.Milliseconds()), int16(0))
	if n := b.count(t, `SELECT count(*) FROM receipt_parked WHERE next_try_at <= now() AND tries < 0`); n != 1 {
		t.Error("the nudge is lost")
	}
	for _, tries := range []int16{-1, 1, 2} { // read after it, the row is put off as ever
		b.exec(t, store.SettlementParkedLater, []int64{event}, int32(time.Hour.Milliseconds()), tries)
	}
	if n := b.count(t, `SELECT tries FROM receipt_parked WHERE next_try_at > now()`); n != 3 {
		t.Errorf("%d tries, want 3", n)
	}
	b.books(t)
}
