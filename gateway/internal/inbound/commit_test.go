package inbound_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

// proxy stands between the server and PostgreSQL. When armed, the next INSERT into the inbox runs and commits, what is
// given runs, and the answer is dropped with the connection.
type proxy struct {
	t       *testing.T
	backend string
	cut     atomic.Pointer[func()]
	cuts    atomic.Int32
}

// through returns the URL of a database by way of a new proxy.
func through(t *testing.T, db string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, backend: u.Host}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(front) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

// cutAfterCommit arms the proxy.
func (p *proxy) cutAfterCommit(meanwhile func()) { p.cut.Store(&meanwhile) }

func (p *proxy) serve(front net.Conn) {
	defer front.Close()
	back, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.backend)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer back.Close()
	var dropping atomic.Pointer[func()]
	var answers sync.WaitGroup
	answers.Go(func() {
		defer front.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := back.Read(buf)
			if err != nil {
				return
			}
			if meanwhile := dropping.Load(); meanwhile != nil && bytes.HasSuffix(buf[:n], []byte{'Z', 0, 0, 0, 5, 'I'}) { // ready, idle
				(*meanwhile)()
				p.cuts.Add(1)
				return
			}
			if dropping.Load() == nil {
				if _, err := front.Write(buf[:n]); err != nil {
					return
				}
			}
		}
	})
	buf := make([]byte, 1<<16)
	for {
		n, err := front.Read(buf)
		if err != nil {
			break
		}
		if bytes.Contains(buf[:n], []byte(marker)) {
			dropping.Store(p.cut.Swap(nil))
		}
		if _, err := back.Write(buf[:n]); err != nil {
			break
		}
	}
	_ = back.Close()
	answers.Wait()
}

// marker is in the content of SUBMITs whose INSERT the proxy is to recognise.
const marker = "recognise me"

func marked() *cmpp.Submit {
	p := sms()
	p.MsgContent = []byte(marker)
	return p
}

func TestNoAnswerBeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	unlock := b.lock(t)
	for range 3 {
		c.submit(sms())
	}
	c.silent(100 * time.Millisecond)
	c.send(77, &cmpp.ActiveTest{}) // the session is not held up
	if hd, p := c.receive(); p.Command() != cmpp.CmdActiveTestResp {
		t.Fatalf("%v %T, want the answer to ACTIVE_TEST", hd, p)
	}
	unlock()
	for want := c.seq - 2; want <= c.seq; want++ {
		if seq, resp := c.answer(); seq != want || resp.Result != 0 {
			t.Errorf("sequence %d result %d, want %d accepted", seq, resp.Result, want)
		}
	}
	if n := b.count(t, "SELECT count(*) FROM inbox"); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
}

// PostgreSQL commits, and its answer is lost: the row is there once and its customer gets one result 0, with its Msg_Id.
func TestAmbiguousCommit(t *testing.T) {
	t.Parallel()
	for name, workflow := range map[string]bool{"row still in the inbox": false, "row processed meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var p *proxy
			p, b.url = through(t, b.url)
			b.start(t)
			c := b.customer(t, cmpp.V30)
			c.accepted(sms())
			b.exec(t, "DELETE FROM inbox")
			p.cutAfterCommit(func() {
				if workflow {
					b.process(t)
				}
			})
			id := c.accepted(marked())
			if p.cuts.Load() != 1 {
				t.Fatal("the answer was not cut")
			}
			rows := b.count(t, "SELECT count(*) FROM inbox WHERE msg_id = $1", int64(id))
			messages := b.count(t, "SELECT count(*) FROM message WHERE msg_id = $1", int64(id))
			if rows+messages != 1 || (messages == 1) != workflow {
				t.Errorf("%d rows and %d messages", rows, messages)
			}
			c.accepted(sms())
			c.silent(20 * time.Millisecond)
		})
	}
}

// process turns the inbox into messages, in one transaction, as the workflow does.
func (b *bench) process(t *testing.T) {
	t.Helper()
	b.exec(t, `WITH gone AS (DELETE FROM inbox RETURNING *)
		INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, units, price_version, state, bill,
			charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
		SELECT id, msg_id, 325, 13800000001, session, accepted_at, now(), enterprise_id, app_id, 1, 1, 1, 1, 1, 1, registered, fmt, udhi, pk_total, pk_number,
			node, dest, src, service, content FROM gone`)
}

func TestPostgresKilledUnderLoad(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresServer(t)
	if err := store.Migrate(t.Context(), pg.URL()); err != nil {
		t.Fatal(err)
	}
	b := setupAt(t, pg.URL())
	b.start(t)
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	const n, kill, down = 300, 150, 170
	answers := make(chan map[uint32]*cmpp.SubmitResp, 1)
	some := make(chan struct{})
	go func() {
		got := map[uint32]*cmpp.SubmitResp{}
		for len(got) < n {
			hd, body, err := c.in.Next()
			if err != nil {
				t.Errorf("after %d answers: %v", len(got), err)
				break
			}
			resp := &cmpp.SubmitResp{}
			if err := resp.Decode(body, c.v); err != nil || got[hd.Sequence] != nil {
				t.Errorf("answer %v: %v, or twice", hd, err)
			}
			if got[hd.Sequence] = resp; len(got) == kill/2 {
				close(some)
			}
		}
		answers <- got
	}()
	killed := make(chan error, 1)
	for i := range n {
		c.submit(sms())
		switch i {
		case kill: // PostgreSQL dies at some point of the SUBMITs that follow
			<-some
			go func() { killed <- pg.Kill() }()
		case down:
			if err := <-killed; err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for seq, resp := range <-answers {
		rows := -1
		eventually(t, "connection to the new server", func() bool {
			return b.QueryRow(t.Context(), "SELECT count(*) FROM inbox WHERE msg_id = $1 AND seq = $2", int64(resp.MsgID), int64(seq)).Scan(&rows) == nil
		})
		switch {
		case resp.Result == 0:
			accepted++
			if rows != 1 {
				t.Errorf("sequence %d accepted with %d rows", seq, rows)
			}
		case resp.Result != 8:
			t.Errorf("sequence %d: result %d", seq, resp.Result)
		}
	}
	if rows := b.count(t, "SELECT count(*) FROM inbox"); rows != accepted+1 || accepted < n/2 {
		t.Errorf("%d rows, %d accepted", rows, accepted)
	}
}

// An id that another row has is not ours: the SUBMIT gets another one and is stored.
func TestIDCollision(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	ids := message.NewIDs(b.node.Number, now.Add(time.Second), now.Add(time.Hour), func() time.Time { return now })
	taken := message.NewIDs(b.node.Number, now.Add(time.Second), now.Add(time.Hour), func() time.Time { return now })
	b.node = &store.Node{Number: b.node.Number, Epoch: b.node.Epoch, IDs: ids, MsgIDs: b.node.MsgIDs}
	b.start(t)
	c := b.customer(t, cmpp.V30) // its session takes the first id
	list, err := taken.Take(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range list[1:3] {
		b.exec(t, `INSERT INTO inbox SELECT $1, $1, 42, 1, 1, now(), NULL, 2, 12, 1, 9, 1, 0, 0, 1, 1, '13900000000', '', '', 'of another'`, id)
	}
	msgID := c.accepted(sms())
	var id, session int64
	if err := b.QueryRow(t.Context(), "SELECT id, session FROM inbox WHERE msg_id = $1", int64(msgID)).Scan(&id, &session); err != nil {
		t.Fatal(err)
	}
	if id != list[3] || session != list[0] {
		t.Errorf("row %d of session %d, want %d of %d", id, session, list[3], list[0])
	}
	if n := b.count(t, "SELECT count(*) FROM inbox WHERE content = 'of another'"); n != 2 {
		t.Errorf("%d rows of another, want 2", n)
	}
	if !strings.Contains(b.log.String(), "inbox ids were taken") {
		t.Error("not in the log")
	}
}

func TestOneBadRowFailsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "ALTER TABLE inbox ADD CHECK (content <> 'poison')")
	b.start(t)
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	unlock := b.lock(t)
	c.submit(sms()) // keeps the committer busy while a batch collects
	const n, bad = 40, 17
	for i := range n {
		p := sms()
		if i == bad {
			p.MsgContent = []byte("poison")
		}
		c.submit(p)
	}
	c.silent(100 * time.Millisecond)
	unlock()
	c.answer()
	first := c.seq - n + 1
	for range n {
		seq, resp := c.answer()
		want := uint32(0)
		if seq == first+bad {
			want = 9
		}
		if resp.Result != want {
			t.Errorf("sequence %d: result %d, want %d", seq, resp.Result, want)
		}
	}
	if rows := b.count(t, "SELECT count(*) FROM inbox"); rows != n+1 {
		t.Errorf("%d rows, want %d", rows, n+1)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.cfg.QueueMax = 5
		b.start(t)
		c := b.customer(t, cmpp.V30)
		c.accepted(sms())
		unlock := b.lock(t)
		c.submit(sms())
		c.silent(100 * time.Millisecond) // it is at PostgreSQL, not in the queue
		for range 5 {
			c.submit(sms())
		}
		for range 3 {
			seq := c.submit(sms())
			if got, resp := c.answer(); got != seq || resp.Result != 8 {
				t.Errorf("beyond the queue: sequence %d, result %d", got, resp.Result)
			}
		}
		unlock()
		for range 6 {
			if seq, resp := c.answer(); resp.Result != 0 {
				t.Errorf("sequence %d: result %d", seq, resp.Result)
			}
		}
		c.send(c.seq, sms()) // refused before, so no resend
		if _, resp := c.answer(); resp.Result != 0 {
			t.Errorf("a refused SUBMIT offered again: result %d", resp.Result)
		}
	})
	t.Run("window", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start(t)
		c := b.customerOf(t, "12345", "s", cmpp.V30) // window 4
		p := sms()
		p.MsgSrc = "12345"
		c.accepted(p)
		unlock := b.lock(t)
		for range 4 {
			c.submit(p)
		}
		seq := c.submit(p)
		if got, resp := c.answer(); got != seq || resp.Result != 8 {
			t.Errorf("beyond the window: sequence %d, result %d", got, resp.Result)
		}
		unlock()
		for range 4 {
			if _, resp := c.answer(); resp.Result != 0 {
				t.Errorf("result %d", resp.Result)
			}
		}
		c.accepted(p)
	})
	t.Run("backlog", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.cfg.BacklogMax = 3
		b.start(t)
		c := b.customer(t, cmpp.V30)
		for range 3 {
			c.accepted(sms())
		}
		eventually(t, "result 8", func() bool {
			c.submit(sms())
			_, resp := c.answer()
			return resp.Result == 8
		})
		other := b.customerOf(t, "12345", "s", cmpp.V30)
		p := sms()
		p.MsgSrc = "12345"
		other.accepted(p) // another application is not concerned
		b.exec(t, "DELETE FROM inbox")
		eventually(t, "result 0 again", func() bool {
			c.submit(sms())
			_, resp := c.answer()
			return resp.Result == 0
		})
	})
}

// Not knowing is not refusing: after the deadline the connection ends without an answer.
func TestCommitDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.CommitDeadline = time.Second
	b.start(t)
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	b.lock(t)
	c.submit(sms())
	c.closed()
	if !strings.Contains(b.log.String(), "left without an answer") {
		t.Error("not in the log")
	}
	eventually(t, "barrier opened", func() bool { return !b.held(t) })
}

// held says whether any Msg_Id is held back, by trying those of this minute.
func (b *bench) held(t *testing.T) bool {
	t.Helper()
	id, err := b.node.MsgIDs.Take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range cmpp.MsgID(64) {
		if b.server.Sessions().Unwritten(id - 1 - i) {
			return true
		}
	}
	return false
}

func TestReceiptsWaitForTheAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V30)
	first := c.accepted(sms())
	unlock := b.lock(t)
	c.submit(sms(numbers(3)...))
	sessions := b.server.Sessions()
	last := first
	eventually(t, "ids held", func() bool { // the next ids, unless a second passed
		next, err := b.node.MsgIDs.Take(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		last = next
		return sessions.Unwritten(next-1) || sessions.Unwritten(first+1)
	})
	unlock()
	_, resp := c.answer()
	if resp.Result != 0 || last == first {
		t.Fatalf("result %d", resp.Result)
	}
	for i := range cmpp.MsgID(3) {
		eventually(t, "barrier open", func() bool { return !sessions.Unwritten(resp.MsgID + i) })
	}
	// A customer who is gone will never get the answer.
	unlock = b.lock(t)
	c.submit(sms())
	eventually(t, "ids held", func() bool { return b.held(t) })
	_ = c.conn.Close()
	unlock()
	eventually(t, "barrier open", func() bool { return !b.held(t) })
}

func TestStopAnswersWhatWasTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	unlock := b.lock(t)
	for range 5 {
		c.submit(sms())
	}
	c.silent(100 * time.Millisecond)
	stopped := make(chan struct{})
	go func() {
		b.stop()
		close(stopped)
	}()
	eventually(t, "listener closed", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.server.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	var late uint32
	eventually(t, "result 8 while stopping", func() bool {
		late = c.submit(sms())
		if err := c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		hd, _, err := c.in.Next()
		return err == nil && hd.Sequence == late
	})
	if err := c.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	unlock()
	accepted := 0
	for {
		hd, p := c.receive()
		if _, ok := p.(*cmpp.Terminate); ok {
			c.send(hd.Sequence, &cmpp.TerminateResp{})
			break
		}
		if resp := p.(*cmpp.SubmitResp); resp.Result == 0 {
			accepted++
		}
	}
	c.closed()
	<-stopped
	if rows := b.count(t, "SELECT count(*) FROM inbox"); rows != accepted+1 || accepted < 5 {
		t.Errorf("%d rows, %d answers", rows, accepted)
	}
}

// BenchmarkSubmit is the whole way over loopback: rows/s with a window of 200 on two connections.
func BenchmarkSubmit(bm *testing.B) {
	b := setup(bm)
	b.start(bm)
	const links, window = 2, 200
	octets := func(c *client, n int) []byte {
		var all []byte
		for range n {
			c.seq++
			var err error
			if all, err = sms().Append(all, c.v, c.seq); err != nil {
				bm.Fatal(err)
			}
		}
		return all
	}
	var clients [links]*client
	for i := range clients {
		clients[i] = b.customer(bm, cmpp.V30)
		clients[i].accepted(sms())
	}
	bm.ReportAllocs()
	bm.ResetTimer()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			sent, got := 0, 0
			for got < bm.N/links {
				if n := min(window-(sent-got), bm.N/links-sent); n > 0 && (sent-got) <= window/2 {
					if _, err := c.conn.Write(octets(c, n)); err != nil {
						bm.Error(err)
						return
					}
					sent += n
				}
				_, body, err := c.in.Next()
				var resp cmpp.SubmitResp
				if err == nil {
					err = resp.Decode(body, c.v)
				}
				if err != nil || resp.Result != 0 {
					bm.Error(fmt.Errorf("result %d: %w", resp.Result, err))
					return
				}
				got++
			}
		})
	}
	wg.Wait()
	bm.ReportMetric(float64(bm.N)/bm.Elapsed().Seconds(), "rows/s")
}
