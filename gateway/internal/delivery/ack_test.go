package delivery_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// pair is two connections of application 1 that answer nothing by themselves, and a DELIVER on each.
func (b *bench) pair(t *testing.T) (p *process, links [2]*customer, on [2]deliver) {
	t.Helper()
	p = b.boot(t)
	for i := range links {
		links[i] = p.connectWith(t, 1, cmpp.V30, session.Config{Window: 1, ResponseTimeout: time.Minute, IdleInterval: time.Minute}, silence)
	}
	p.receipt(t, 1)
	p.receipt(t, 1)
	p.nudge()
	for i := range links {
		on[i] = links[i].next()
	}
	return p, links, on
}

// left is whether the row of a DELIVER is still there.
func (b *bench) left(t *testing.T, d deliver) bool {
	t.Helper()
	return b.count(t, "SELECT count(*) FROM delivery WHERE id = $1", int64(d.MsgID)) == 1
}

func TestAnswerOnAnotherConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 1
	p, links, on := b.pair(t)
	stray := on[0]
	stray.seq = on[1].seq + 1000 // of no call of the other connection
	links[1].reply(stray, 0)
	eventually(t, "acknowledged", func() bool { return !b.left(t, on[0]) })
	if !b.left(t, on[1]) {
		t.Error("the other one is gone too")
	}
	// Neither another application nor a Msg_Id that is not in flight acknowledges anything.
	other := p.connectWith(t, 2, cmpp.V30, session.Config{Window: 1, ResponseTimeout: time.Minute, IdleInterval: time.Minute}, silence)
	other.reply(on[1], 0)
	links[0].reply(deliver{on[0].seq + 1000, &cmpp.Deliver{MsgID: 77}}, 0)
	links[0].reply(stray, 0) // once more
	eventually(t, "all were heard", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.strays == 4
	})
	if n := p.value(t, "cmppgw_delivery_inflight"); n != 1 {
		t.Errorf("%v in flight, want the one that nobody acknowledged", n)
	}
	links[1].reply(on[1], 0)
	eventually(t, "acknowledged", func() bool { return !b.left(t, on[1]) })
	if n := b.count(t, "SELECT count(*) FROM delivery") + b.count(t, "SELECT count(*) FROM dead_letter"); n != 0 {
		t.Errorf("%d left", n)
	}
}

// A customer that mixes up its connections answers with Sequence_Ids that belong to other DELIVERs: the Msg_Id counts.
func TestAnswersOfMixedUpConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 1
	_, links, on := b.pair(t)
	links[1].reply(deliver{on[1].seq, &cmpp.Deliver{MsgID: on[0].MsgID}}, 0)
	eventually(t, "acknowledged", func() bool { return !b.left(t, on[0]) })
	if !b.left(t, on[1]) {
		t.Error("the DELIVER of that connection was taken for acknowledged")
	}
	links[0].reply(deliver{on[0].seq, &cmpp.Deliver{MsgID: on[1].MsgID}}, 0)
	eventually(t, "acknowledged", func() bool { return !b.left(t, on[1]) })
}

// Answering with the Msg_Id of the report is a common slip, and an answer all the same.
func TestAnswerWithTheInnerMsgID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 1
	_, links, on := b.pair(t)
	for i := range links {
		links[i].reply(deliver{on[i].seq, &cmpp.Deliver{MsgID: submitOf(on[i].MsgID)}}, 0)
	}
	eventually(t, "acknowledged", func() bool { return !b.left(t, on[0]) && !b.left(t, on[1]) })
}
