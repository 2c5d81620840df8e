package settlement_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestDaysOfAStatementAreChinas", "TestDoneTimeAroundMidnightInChina", "TestOverdue", "TestOverdueAnswers", "TestResends", "TestUnknownBinding", "TestCommandsThatWaitedTooLongExpire")
}

// A statement covers days of China. Of two unknown submits around midnight there, the one of the day it covers was not sent.
func TestDaysOfAStatementAreChinas(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	midnight := time.Date(2026, 8, 25, 16, 0, 0, 0, time.UTC)
	before, after := b.send(t, spec{}), b.send(t, spec{})
	for m, at := range map[int64]time.Time{before.submit: midnight.Add(-time.Second), after.submit: midnight} {
		lost := before
		if m == after.submit {
			lost = after
		}
		b.lose(t, lost)
		b.exec(t, `UPDATE unknown_submit SET dispatched_at = $2 WHERE submit_id = $1`, m, at)
	}
	got := b.resolve(t, settlement.NotSent, lineOf("900001", 99, 13999999999, midnight.Add(-12*time.Hour), 0))
	if want := (settlement.Resolution{NotSent: 1, Kept: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	b.want(t, before, message.Failed, message.Released, "REJECTD")
	b.want(t, after, message.Unknown, message.Frozen, "")
}

func TestDoneTimeAroundMidnightInChina(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for done, want := range map[string]time.Time{
		"2608252359": time.Date(2026, 8, 25, 15, 59, 0, 0, time.UTC), "2608260000": time.Date(2026, 8, 25, 16, 0, 0, 0, time.UTC),
	} {
		m := b.send(t, spec{})
		id := uint64(m.submit) & 0xFFFFFFFF
		b.accept(t, m, id)
		b.exec(t, receiptSQL, b.id(t), b.id(t), int64(id), m.phone, 1, b.node.Number, delivered, done)
		b.settle(t)
		var at time.Time
		if err := b.QueryRow(t.Context(), `SELECT done_at FROM delivery WHERE message_id = $1`, m.message).Scan(&at); err != nil {
			t.Fatal(err)
		}
		if !at.Equal(want) {
			t.Errorf("%s: done at %s, want %s", done, at.In(cmpp.Shanghai), want)
		}
	}
}
