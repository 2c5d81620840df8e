package inbound

import (
	"context"
	"log/slog"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// Enquirer knows what became of SUBMITs.
type Enquirer interface {
	// Cancel takes a SUBMIT back; ok says that nothing of it was or will be sent. After an error it is not known.
	Cancel(ctx context.Context, enterprise, app int32, id cmpp.MsgID) (ok bool, err error)
	// Query counts a day's traffic of an application.
	Query(ctx context.Context, app int32, q *cmpp.Query) (*cmpp.QueryResp, error)
}

const (
	askMost     = 256              // questions of all connections that wait
	askMostEach = 4                // of one connection
	askTime     = 20 * time.Second // for one answer, less than T of customers
	askAgain    = 200 * time.Millisecond

	cancelDone   = 0 // Success_Id
	cancelFailed = 1
)

// question is a CANCEL or a QUERY on its way to its answer.
type question struct {
	conn    *conn
	session *session.Session
	seq     uint32
	pdu     cmpp.PDU
}

// asker answers CANCEL and QUERY, apart from each other: a QUERY may take seconds.
type asker struct {
	from             Enquirer
	log              *slog.Logger
	cancels, queries chan question
}

func newAsker(from Enquirer, log *slog.Logger) *asker {
	return &asker{from: from, log: log, cancels: make(chan question, askMost), queries: make(chan question, askMost)}
}

// add takes a question in; false when there are too many.
func (a *asker) add(q question) bool {
	if q.conn.asking.Add(1) > askMostEach {
		q.conn.asking.Add(-1)
		return false
	}
	to := a.queries
	if _, ok := q.pdu.(*cmpp.Cancel); ok {
		to = a.cancels
	}
	select {
	case to <- q:
		return true
	default:
		q.conn.asking.Add(-1)
		return false
	}
}

// run answers until ctx is done.
func (a *asker) run(ctx context.Context, from <-chan question) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-from:
			if resp := a.answer(ctx, &q); resp != nil {
				q.conn.reply(q.session, q.seq, resp)
			}
			q.conn.asking.Add(-1)
		}
	}
}

// answer is nil when there is none: the customer is not told what may be false, and asks again.
func (a *asker) answer(ctx context.Context, q *question) cmpp.PDU {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for {
		var resp cmpp.PDU
		var err error
		switch p := q.pdu.(type) {
		case *cmpp.Cancel:
			var ok bool
			if ok, err = a.from.Cancel(ctx, q.conn.enterprise, q.conn.app, p.MsgID); err == nil {
				r := &cmpp.CancelResp{SuccessID: cancelFailed}
				if ok {
					r.SuccessID = cancelDone
				}
				resp = r
			}
		case *cmpp.Query:
			resp, err = a.query(ctx, q.conn.app, p)
		}
		if err == nil {
			return resp
		}
		if wait(ctx, askAgain); ctx.Err() != nil {
			a.log.Error("question of a customer is not answered", slog.String("command", q.pdu.Command().String()), slog.Int("app", int(q.conn.app)), slog.Any("error", err))
			return nil
		}
	}
}

func (a *asker) query(ctx context.Context, app int32, p *cmpp.Query) (cmpp.PDU, error) {
	r, err := a.from.Query(ctx, app, p)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ask answers a CANCEL or QUERY, now if it cannot be looked into. A CANCEL that was not looked into took nothing back.
func (c *conn) ask(s *session.Session, seq uint32, p cmpp.PDU) {
	if c.server.asker.from != nil && c.server.asker.add(question{c, s, seq, p}) {
		return
	}
	if _, ok := p.(*cmpp.Cancel); ok {
		c.reply(s, seq, &cmpp.CancelResp{SuccessID: cancelFailed})
	}
}
