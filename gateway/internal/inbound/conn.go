package inbound

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// conn is one logged-in connection; it handles what its session reads.
type conn struct {
	server     *Server
	id         int64 // of the session in rows: unlike session.Session's, it never comes twice
	app        int32
	enterprise int32
	spID       string // it was let in with …
	secret     string
	attempt    *attempt
	end        context.CancelFunc // ends the session gracefully; set before it runs
	session    *session.Session   // set before it runs
	log        *slog.Logger
	hash       maphash.Hash // reader only
	running    bool         // guarded by places, as cut
	cut        *time.Timer  // of a session that must end; nil: it need not
	closing    atomic.Bool  // it must end: no more SUBMITs
	rate       bucket       // guarded by rates
	asking     atomic.Int32 // CANCELs and QUERYs that are not answered

	mu         sync.Mutex
	unanswered int
	recent     recent
	logged     map[refusal]struct{} // refusals that were logged
}

// release ends what recheck has begun. The connection has left its place, so nobody begins anything more.
func (c *conn) release() {
	if c.cut != nil {
		c.cut.Stop()
	}
}

// recent remembers the last SUBMITs of a connection by sequence number, to recognise resends: the same number and content
// within the time in which a peer resends (CMPP 3.0 §6.3, N·T). Another content is a new message: numbers wrap.
type recent [recentSlots]struct {
	seq   uint32
	hash  uint64 // 0: empty
	at    time.Time
	msgID cmpp.MsgID // 0: not answered yet
}

const recentSlots = 512

// OnRequest implements session.Handler.
func (c *conn) OnRequest(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
	switch p := p.(type) {
	case *cmpp.Submit:
		c.submit(s, hd.Sequence, p)
	case *cmpp.Query, *cmpp.Cancel:
		c.ask(s, hd.Sequence, p)
	}
}

// OnBadRequest implements session.Handler.
func (c *conn) OnBadRequest(s *session.Session, hd cmpp.Header, err *cmpp.DecodeError) {
	if hd.Command == cmpp.CmdSubmit {
		c.refuse(s, hd.Sequence, refusal{err.Result, err.Error()})
		return
	}
	var p cmpp.PDU = &cmpp.QueryResp{}
	if hd.Command == cmpp.CmdCancel {
		p = &cmpp.CancelResp{SuccessID: cancelFailed}
	}
	c.reply(s, hd.Sequence, p)
}

// Late is a call's token that wants the answer also after the call timed out.
type Late interface {
	OnLate(p cmpp.PDU)
}

// OnLateResponse implements session.Handler.
func (c *conn) OnLateResponse(_ *session.Session, _ cmpp.Header, p cmpp.PDU, token any) {
	if l, ok := token.(Late); ok {
		l.OnLate(p)
	}
}

// OnStrayResponse implements session.StrayHandler.
func (c *conn) OnStrayResponse(_ *session.Session, _ cmpp.Header, p cmpp.PDU) {
	if resp, ok := p.(*cmpp.DeliverResp); ok {
		c.server.sessions.stray(c.app, resp)
	}
}

func (c *conn) submit(s *session.Session, seq uint32, p *cmpp.Submit) {
	now := time.Now()
	app := c.server.Settings.Current().Applications[c.app]
	if app == nil || c.closing.Load() { // this session is about to end
		c.refuse(s, seq, refusal{resultOther, "the application may not be connected any more"})
		return
	}
	found, fault := check(p, s.Version(), app, now)
	if !fault.ok() {
		c.refuse(s, seq, fault)
		return
	}
	first, fault := c.admit(seq, c.digest(p), now, app.WindowSize)
	switch {
	case !fault.ok():
		c.refuse(s, seq, fault)
		return
	case first != nil:
		c.server.metrics.resends.Inc()
		if *first != 0 { // else its answer is on the way, and it answers both
			c.reply(s, seq, &cmpp.SubmitResp{MsgID: *first})
		}
		return
	}
	if fault = c.entrance(app, p, &found, now); !fault.ok() {
		c.forget(seq)
		c.refuse(s, seq, fault)
		return
	}
	r := &request{conn: c, seq: seq, at: now, submit: p, checked: found}
	if !c.server.batcher.add(r) {
		c.server.metrics.limited.WithLabelValues(string(valveQueue)).Inc()
		c.forget(seq)
		c.refuse(s, seq, refusal{resultFlow, "the inbox takes no more at the moment"})
	}
}

// digest is the content of a SUBMIT as far as it makes another message of it; never 0.
func (c *conn) digest(p *cmpp.Submit) uint64 {
	h := &c.hash
	h.Reset()
	word := func(s string) {
		_, _ = h.WriteString(s) // documented to never fail, as the others below
		_ = h.WriteByte(0)
	}
	for _, b := range [...]byte{p.PkTotal, p.PkNumber, p.RegisteredDelivery, p.TPUDHI, p.MsgFmt} {
		_ = h.WriteByte(b)
	}
	word(p.ServiceID)
	word(p.SrcID)
	word(p.ValidTime)
	word(p.AtTime)
	for _, d := range p.DestTerminalID {
		word(d)
	}
	_, _ = h.Write(p.MsgContent)
	return h.Sum64() | 1
}

// admit takes a SUBMIT in, unless it is a resend, of which first is the Msg_Id (0 while it is not committed), or one more
// than the customer may have unanswered.
func (c *conn) admit(seq uint32, hash uint64, now time.Time, window int) (first *cmpp.MsgID, fault refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := &c.recent[seq%recentSlots]
	if slot.seq == seq && slot.hash == hash && now.Sub(slot.at) < c.server.resendTime {
		id := slot.msgID
		return &id, refusal{}
	}
	if c.unanswered >= window {
		c.server.metrics.limited.WithLabelValues(string(valveWindow)).Inc()
		return nil, refusal{resultFlow, "more SUBMITs unanswered than the window allows"}
	}
	c.unanswered++
	slot.seq, slot.hash, slot.at, slot.msgID = seq, hash, now, 0
	return nil, refusal{}
}

func (c *conn) forget(seq uint32) { c.over(seq, 0) }

// over ends a SUBMIT; with id 0 it was refused, and the same SUBMIT again is a new one.
func (c *conn) over(seq uint32, id cmpp.MsgID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered--
	if slot := &c.recent[seq%recentSlots]; slot.seq == seq {
		if slot.msgID = id; id == 0 {
			slot.hash = 0
		}
	}
}

// answer ends a request that was admitted.
func (c *conn) answer(r *request, result uint32) {
	r.resp.Result = result
	if result != resultOK {
		c.forget(r.seq)
		c.server.sessions.open(r)
		c.refuse(c.session, r.seq, refusal{result, "not stored"})
		return
	}
	c.over(r.seq, r.resp.MsgID)
	c.server.metrics.results.WithLabelValues(code(result)).Inc()
	var written func(error)
	if r.receipts() > 0 {
		written = func(error) { c.server.sessions.open(r) } // written, or the session ended before: no answer will come
	}
	if err := c.session.Reply(r.seq, &r.resp, written); err != nil {
		c.server.sessions.open(r)
		c.unread(c.session, err)
	}
}

// loggedMost bounds the lines about refusals of one connection.
const loggedMost = 32

func (c *conn) refuse(s *session.Session, seq uint32, why refusal) {
	c.server.metrics.results.WithLabelValues(code(why.result)).Inc()
	c.mu.Lock()
	_, again := c.logged[why]
	first := !again && len(c.logged) < loggedMost
	if first {
		if c.logged == nil {
			c.logged = make(map[refusal]struct{})
		}
		c.logged[why] = struct{}{}
	}
	c.mu.Unlock()
	write := c.log.Debug
	if first { // one line for each cause on a connection: customers can bring about any number of refusals
		write = c.log.Info
	}
	write("SUBMIT refused", slog.Uint64("result", uint64(why.result)), slog.String("cause", why.cause), slog.Uint64("sequence", uint64(seq)))
	c.reply(s, seq, &cmpp.SubmitResp{Result: why.result})
}

func (c *conn) reply(s *session.Session, seq uint32, p cmpp.PDU) {
	if err := s.Reply(seq, p, nil); err != nil {
		c.unread(s, err)
	}
}

// unread ends a session whose answers cannot be queued: the peer asks and does not read.
func (c *conn) unread(s *session.Session, err error) {
	if !errors.Is(err, session.ErrClosed) {
		s.Close(err)
	}
}
