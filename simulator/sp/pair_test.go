package sp_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
	"cmppgateway/simulator/sp"
)

// pair is one simulated customer wired straight to one simulated supplier.
type pair struct {
	clock    *simclock.Clock
	supplier *ismg.Server
	customer *sp.Client
	addr     string
}

const (
	pairID     = "900001"
	pairSecret = "secret"
	firstKey   = 13800000000
)

func profile() ismg.Profile {
	return ismg.Profile{
		Seed: 7,
		Accounts: []ismg.Account{{
			ID: pairID, Secret: pairSecret, Version: 0x30, MaxConnections: 8, Window: 32, GatewayCode: 1001,
		}},
	}
}

// start runs a supplier of p, and a customer of cfg whose empty fields are
// filled in, until the test ends.
func start(tb testing.TB, p ismg.Profile, o ismg.Options, cfg sp.Config) *pair {
	tb.Helper()
	clock := simclock.New()
	supplier, err := ismg.New(p, clock, o)
	if err != nil {
		tb.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Addr = ln.Addr().String()
	if cfg.ID == "" {
		cfg.ID, cfg.Secret = pairID, pairSecret
	}
	customer, err := sp.New(cfg, clock)
	if err != nil {
		tb.Fatal(err)
	}
	up, stopSupplier := context.WithCancel(context.Background())
	run, stopCustomer := context.WithCancel(context.Background())
	var suppliers, customers sync.WaitGroup
	suppliers.Go(func() {
		if err := supplier.Serve(up, ln); err != nil {
			tb.Error(err)
		}
	})
	customers.Go(func() {
		if err := customer.Run(run); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() {
		stopCustomer()
		customers.Wait()
		stopSupplier()
		suppliers.Wait()
	})
	return &pair{clock: clock, supplier: supplier, customer: customer, addr: cfg.Addr}
}

func limit(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, fmt.Errorf("%s took too long", tb.Name()))
	tb.Cleanup(cancel)
	return ctx
}

// messages returns n messages to consecutive numbers, evenly due over hold.
func messages(n int, hold time.Duration) []sp.Message {
	due := sp.Even(n, hold)
	list := make([]sp.Message, n)
	for i := range list {
		key := firstKey + uint64(i)
		list[i] = sp.Message{
			Due: due[i], Key: key, Number: fmt.Sprint(key), Content: []byte("hello"), Registered: 1, SrcID: "10690001",
		}
	}
	return list
}

// send fires the messages now and waits until all are answered or given up.
func (p *pair) send(ctx context.Context, tb testing.TB, list []sp.Message) {
	tb.Helper()
	if err := p.customer.Send(ctx, list, p.clock.Now()); err != nil {
		tb.Fatal(err)
	}
	if err := p.customer.Drain(ctx); err != nil {
		tb.Fatal(err)
	}
}

// receipts waits until n receipts are there.
func (p *pair) receipts(ctx context.Context, tb testing.TB, n int) {
	tb.Helper()
	if err := p.customer.Wait(ctx, func(c sp.Counts) bool { return c.Receipts >= n }); err != nil {
		tb.Fatal(err)
	}
}

func (p *pair) ready(ctx context.Context, tb testing.TB, n int) {
	tb.Helper()
	if err := p.customer.Ready(ctx, n); err != nil {
		tb.Fatal(err)
	}
}

// eventually polls the supplier, which has nothing to wait on.
func eventually(ctx context.Context, tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			tb.Fatalf("never: %s", what)
		}
	}
}

func deckProfile() ismg.Profile {
	p := profile()
	p.Behaviour = ismg.Behaviour{
		SubmitRTT:    ismg.Dist{Kind: ismg.Lognormal, P50: 3 * time.Millisecond, P99: 10 * time.Millisecond},
		ReceiptDelay: ismg.Dist{Kind: ismg.Uniform, Min: 5 * time.Millisecond, Max: 50 * time.Millisecond},
		Deck: ismg.DeckSpec{
			Block: 1000, Result8First: 10, Results: map[uint32]int{13: 4}, NoReceipt: 25,
			ReceiptFailed: map[string]int{"UNDELIV": 3, "EXPIRED": 2}, ReceiptEarly: 2, ReceiptTwice: 2,
		},
	}
	return p
}

// TestDeck sends two whole decks and finds every card on both sides, exactly.
func TestDeck(t *testing.T) {
	t.Parallel()
	for _, version := range []uint8{0x20, 0x30} {
		t.Run(fmt.Sprintf("%02x", version), func(t *testing.T) {
			t.Parallel()
			p := deckProfile()
			p.Accounts[0].Version = version
			pr := start(t, p, ismg.Options{Place: ismg.PlaceBy(firstKey, 1000)}, sp.Config{Connections: 4, Window: 32, Version: version})
			ctx := limit(t)
			pr.ready(ctx, t, 4)
			const n = 2000
			pr.send(ctx, t, messages(n, time.Second))
			accepted := n - 2*(10+4)
			want := accepted - 2*25 + 2*2
			pr.receipts(ctx, t, want)
			eventually(ctx, t, "all reports acknowledged", func() bool {
				acked := 0
				for _, r := range pr.supplier.Record().Reports {
					if r.Acked != 0 {
						acked++
					}
				}
				return acked == want
			})
			checkDeck(t, pr, n, accepted, want)
		})
	}
}

func checkDeck(t *testing.T, pr *pair, n, accepted, receipts int) {
	t.Helper()
	seen, did := pr.customer.Record(), pr.supplier.Record()

	results := map[uint32]int{}
	byID := map[uint64]*sp.Sent{}
	for i := range seen.Sent {
		s := &seen.Sent[i]
		results[s.Result]++
		if s.Accepted() {
			byID[s.MsgID] = s
		}
		if s.State != sp.Answered || s.Due > s.Fire || s.Fire > s.Slot || s.Slot > s.Write || s.Write > s.Resp {
			t.Fatalf("stamps out of order: %+v", s)
		}
	}
	if results[0] != accepted || results[8] != 20 || results[13] != 8 || len(byID) != accepted {
		t.Errorf("results %v, %d ids", results, len(byID))
	}
	// Receipts planned early are; another may overtake its answer only because
	// it travels on another connection.
	planned := map[uint64]bool{}
	for _, r := range did.Reports {
		if r.Early {
			planned[r.DeliverID] = true
		}
	}
	stats := map[string]int{}
	early, twice := 0, 0
	for i := range seen.Receipts {
		r := &seen.Receipts[i]
		s := byID[r.MsgID]
		if s == nil || s.Number != r.Number {
			t.Fatalf("receipt matches nothing: %+v", r)
		}
		twice += r.Copy
		if r.Copy == 0 {
			stats[r.Stat]++
		}
		if planned[r.DeliverID] && r.At <= s.Resp && r.Conn == s.Conn {
			early++
		} else if r.At < s.Resp && r.Conn == s.Conn {
			t.Errorf("early without a plan: %+v", r)
		}
	}
	if stats["UNDELIV"] != 6 || stats["EXPIRED"] != 4 || stats["DELIVRD"] != accepted-50-10 || twice != 4 || len(seen.Receipts) != receipts {
		t.Errorf("stats %v, twice %d, receipts %d", stats, twice, len(seen.Receipts))
	}
	if early != 4 {
		t.Errorf("%d early receipts, want 4", early)
	}

	cards := map[ismg.Card]int{}
	for i := range did.Submits {
		s := &did.Submits[i]
		cards[s.Fate.Card]++
		if s.Sent-s.Recv < s.Hold && s.Fate.Card != ismg.ReceiptEarly {
			t.Errorf("answered before its time: %+v", s)
		}
	}
	if len(did.Submits) != n || cards[ismg.Result8First] != 20 || cards[ismg.Refused] != 8 || cards[ismg.NoReceipt] != 50 ||
		cards[ismg.ReceiptFailed] != 10 || cards[ismg.ReceiptEarly] != 4 || cards[ismg.ReceiptTwice] != 4 {
		t.Errorf("%d submits, cards %v", len(did.Submits), cards)
	}
	if len(did.Violations) > 0 || seen.Unexpected > 0 {
		t.Errorf("violations %+v, unexpected %d", did.Violations, seen.Unexpected)
	}
	for _, c := range did.Conns {
		if c.InFlightPeak > 32 || c.DeliverPeak > 32 || c.Submits == 0 {
			t.Errorf("connection %+v", c)
		}
	}
}

// TestSecondAttempt: result_8_first is 8 once per message, on whatever
// connection and account the second attempt comes.
func TestSecondAttempt(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Behaviour.Deck = ismg.DeckSpec{Block: 1, Result8First: 1}
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 2})
	ctx := limit(t)
	pr.ready(ctx, t, 2)
	first := messages(20, 0)
	second := messages(20, 0)
	pr.send(ctx, t, first)
	pr.customer.Cut(0, true)
	if err := pr.customer.Wait(ctx, func(c sp.Counts) bool { return c.Live < 2 }); err != nil {
		t.Fatal(err)
	}
	pr.ready(ctx, t, 2)
	pr.send(ctx, t, second)
	for i, s := range pr.customer.Record().Sent {
		if want := uint32(8 * (1 - i/20)); s.Result != want {
			t.Errorf("message %d: result %d, want %d", i, s.Result, want)
		}
	}
}

// TestFatesSurviveCuts compares a run with lost connections to the deck: what
// a message met does not depend on where or when it arrived.
func TestFatesSurviveCuts(t *testing.T) {
	t.Parallel()
	p := deckProfile()
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 3, Window: 8, MinBackoff: 5 * time.Millisecond})
	ctx := limit(t)
	pr.ready(ctx, t, 3)
	var cuts sync.WaitGroup
	cuts.Go(func() {
		for i, how := range []ismg.Cut{ismg.RST, ismg.FIN, ismg.RST, ismg.FIN} {
			at := 100 * (i + 1)
			err := pr.customer.Wait(ctx, func(c sp.Counts) bool { return c.Fired >= at && c.Live == 3 })
			live := pr.supplier.Live()
			if err != nil || len(live) == 0 {
				t.Errorf("cut %d: %v, %d live", i, err, len(live))
				return
			}
			if _, err := pr.supplier.Cut(live[0].ID, how); err != nil {
				t.Error(err)
			}
		}
	})
	pr.send(ctx, t, messages(600, 600*time.Millisecond))
	cuts.Wait()
	deck := ismg.NewDeck(p.Seed, p.Behaviour.Deck, nil)
	did := pr.supplier.Record()
	for i := range did.Submits {
		s := &did.Submits[i]
		if want := deck.Fate(s.Key, 0); s.Attempt != 0 || s.Fate != want {
			t.Errorf("%d: attempt %d fate %+v, want %+v", s.Key, s.Attempt, s.Fate, want)
		}
	}
	n := pr.customer.Counts()
	if n.Answered+n.Unanswered != 600 || n.NotSent+n.TimedOut > 0 {
		t.Errorf("counts %+v", n)
	}
	if len(did.Submits) < n.Answered || len(did.Conns) < 7 {
		t.Errorf("%d submits on %d connections", len(did.Submits), len(did.Conns))
	}
	// Every report of an accepted message arrives, whatever was cut.
	due := 0
	for i := range did.Submits {
		if s := &did.Submits[i]; s.Accepted() && s.Fate.Stat != "" {
			due++
		}
	}
	if err := pr.customer.Wait(ctx, func(c sp.Counts) bool { return c.Receipts-c.DuplicateReceipts >= due }); err != nil {
		t.Error(err)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Accounts[0].RateLimit = 100
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 2, Window: 32})
	ctx := limit(t)
	pr.ready(ctx, t, 2)
	pr.send(ctx, t, messages(150, 300*time.Millisecond)) // 500/s, all within a second
	refused := 0
	for _, s := range pr.customer.Record().Sent {
		if s.Result == 8 {
			refused++
		}
	}
	violations := len(pr.supplier.Record().Violations)
	if refused != violations || refused < 150-2*105 || refused == 0 {
		t.Errorf("%d refused, %d violations", refused, violations)
	}
}

// TestOpenModel: with one slot and 10 messages due at once, all fire at once
// and wait; the wait shows.
func TestOpenModel(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Behaviour.SubmitRTT = ismg.FixedAt(10 * time.Millisecond)
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 1, Window: 1})
	ctx := limit(t)
	pr.ready(ctx, t, 1)
	pr.send(ctx, t, messages(10, 0))
	sent := pr.customer.Record().Sent
	for i, s := range sent {
		if s.Fire != sent[0].Fire || s.Slot < sent[0].Slot+int64(i)*int64(10*time.Millisecond) {
			t.Errorf("message %d: fired %d later, slot %d later than the first", i, s.Fire-sent[0].Fire, s.Slot-sent[0].Slot)
		}
	}
	if peak := pr.supplier.Record().Conns[0].InFlightPeak; peak != 1 {
		t.Errorf("peak %d, want 1", peak)
	}
}

// TestNothingDropped: the cap, and a phase that is cut short, are on record.
func TestNothingDropped(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Behaviour.SubmitRTT = ismg.FixedAt(time.Minute)
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 1, Window: 2, MaxOutstanding: 5})
	ctx := limit(t)
	pr.ready(ctx, t, 1)
	cut, cancel := context.WithCancel(ctx)
	list := messages(10, 0)
	for i := 8; i < 10; i++ {
		list[i].Due = int64(time.Hour)
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		if err := pr.customer.Send(cut, list, pr.clock.Now()); err == nil {
			t.Error("a phase cut short is no error")
		}
	})
	if err := pr.customer.Wait(ctx, func(c sp.Counts) bool { return c.Fired == 8 }); err != nil {
		t.Fatal(err)
	}
	cancel()
	sending.Wait()
	if n := pr.customer.Counts(); n.Fired != 10 || n.NotSent != 3+2 || n.Waiting != 3 || n.InFlight != 2 {
		t.Errorf("counts %+v", n)
	}
	for i, s := range pr.customer.Record().Sent {
		if i >= 5 && (s.State != sp.NotSent || s.Due == 0 || s.Write != 0) {
			t.Errorf("message %d: %+v", i, s)
		}
	}
	unsorted := []sp.Message{{Due: 2}, {Due: 1}}
	if err := pr.customer.Send(ctx, unsorted, 0); err == nil {
		t.Error("unsorted messages were taken")
	}
}

// TestFaults shows every ready-made control from the customer's side.
func TestFaults(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, c := range []struct {
		name     string
		control  ismg.Control
		receipts int
		check    func(t *testing.T, sent []sp.Sent, byID map[uint64][]sp.Receipt, r sp.Record)
	}{
		{"late", ismg.Late(300 * time.Millisecond), n, func(t *testing.T, sent []sp.Sent, _ map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if s.Resp-s.Write < int64(300*time.Millisecond) || !s.Accepted() {
					t.Errorf("answered in %d", s.Resp-s.Write)
				}
			}
		}},
		{"twice", ismg.Twice(), n, func(t *testing.T, sent []sp.Sent, _ map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if s.Answers != 2 {
					t.Errorf("%d answers", s.Answers)
				}
			}
		}},
		{"disorder", ismg.Disorder(30 * time.Millisecond), n, func(t *testing.T, sent []sp.Sent, _ map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			overtaken := 0
			for i := range sent {
				for j := range sent[:i] {
					if sent[j].Conn == sent[i].Conn && sent[j].Resp > sent[i].Resp {
						overtaken++
					}
				}
			}
			if overtaken < n/4 {
				t.Errorf("%d pairs out of order", overtaken)
			}
		}},
		{"silent", ismg.Silent(), n, func(t *testing.T, sent []sp.Sent, _ map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if s.Resp != 0 || s.State == sp.Answered {
					t.Errorf("answered: %+v", s)
				}
			}
		}},
		{"wrong-seq", ismg.WrongSeq(), n, func(t *testing.T, _ []sp.Sent, _ map[uint64][]sp.Receipt, r sp.Record) {
			t.Helper()
			if r.Unexpected != n {
				t.Errorf("%d unexpected answers", r.Unexpected)
			}
		}},
		{"early", ismg.EarlyReceipt(), n, func(t *testing.T, sent []sp.Sent, byID map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if r := byID[s.MsgID]; len(r) != 1 || r[0].At > s.Resp || r[0].Conn != s.Conn {
					t.Errorf("receipts %+v of %+v", r, s)
				}
			}
		}},
		{"receipt-twice", ismg.ReceiptAgain(time.Millisecond), 2 * n, func(t *testing.T, sent []sp.Sent, byID map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if r := byID[s.MsgID]; len(r) != 2 || r[0].Stat != r[1].Stat || r[0].DeliverID == r[1].DeliverID || r[1].Copy != 1 {
					t.Errorf("receipts %+v", r)
				}
			}
		}},
		{"contradict", ismg.Contradict("UNDELIV", 20*time.Millisecond), 2 * n, func(t *testing.T, sent []sp.Sent, byID map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				// The supplier sends DELIVRD first; two links may be read in the other order.
				r := slices.SortedFunc(slices.Values(byID[s.MsgID]), func(a, b sp.Receipt) int { return cmp.Compare(a.DeliverID, b.DeliverID) })
				if len(r) != 2 || r[0].Stat != "DELIVRD" || r[1].Stat != "UNDELIV" {
					t.Errorf("receipts %+v", r)
				}
			}
		}},
		{"elsewhere", ismg.Elsewhere(), n, func(t *testing.T, sent []sp.Sent, byID map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if r := byID[s.MsgID]; len(r) != 1 || r[0].Conn == s.Conn {
					t.Errorf("receipts %+v of a message on %d", r, s.Conn)
				}
			}
		}},
		{"never", ismg.NoReceipts(), 0, func(t *testing.T, _ []sp.Sent, byID map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			if len(byID) != 0 {
				t.Errorf("%d receipts", len(byID))
			}
		}},
		{"rejects", ismg.Answer(8), 0, func(t *testing.T, sent []sp.Sent, byID map[uint64][]sp.Receipt, _ sp.Record) {
			t.Helper()
			for _, s := range sent {
				if s.Result != 8 || s.MsgID != 0 {
					t.Errorf("answer %+v", s)
				}
			}
			if len(byID) != 0 {
				t.Errorf("%d receipts", len(byID))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := profile()
			p.Behaviour.SubmitRTT = ismg.FixedAt(5 * time.Millisecond)
			p.Behaviour.ReceiptDelay = ismg.FixedAt(5 * time.Millisecond)
			pr := start(t, p, ismg.Options{}, sp.Config{Connections: 2, Window: 64})
			ctx := limit(t)
			pr.ready(ctx, t, 2)
			pr.supplier.Control(c.control)
			if err := pr.customer.Send(ctx, messages(n, 20*time.Millisecond), pr.clock.Now()); err != nil {
				t.Fatal(err)
			}
			if c.name != "silent" && c.name != "wrong-seq" {
				if err := pr.customer.Drain(ctx); err != nil {
					t.Fatal(err)
				}
			}
			pr.receipts(ctx, t, c.receipts)
			eventually(ctx, t, "all written", func() bool {
				r := pr.supplier.Record()
				for _, conn := range r.Conns {
					if conn.InFlight > 0 {
						return false
					}
				}
				return len(r.Submits) == n
			})
			// The second copy of an answer is in the same write as the first,
			// but maybe not in the same read.
			if err := pr.customer.Wait(ctx, func(sp.Counts) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if c.name == "twice" {
				eventually(ctx, t, "second copies", func() bool {
					for _, s := range pr.customer.Record().Sent {
						if s.Answers != 2 {
							return false
						}
					}
					return true
				})
			}
			if c.name == "wrong-seq" {
				eventually(ctx, t, "wrong answers", func() bool { return pr.customer.Record().Unexpected == n })
			}
			r := pr.customer.Record()
			byID := map[uint64][]sp.Receipt{}
			for _, receipt := range r.Receipts {
				byID[receipt.MsgID] = append(byID[receipt.MsgID], receipt)
			}
			c.check(t, r.Sent, byID, r)
			if v := pr.supplier.Record().Violations; len(v) > 0 {
				t.Errorf("violations %+v", v)
			}
		})
	}
}

// TestTimeout: no answer in time frees the slot and is noted; the late answer
// is noted, too.
func TestTimeout(t *testing.T) {
	t.Parallel()
	p := profile()
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 1, Window: 1, ResponseTimeout: 50 * time.Millisecond})
	ctx := limit(t)
	pr.ready(ctx, t, 1)
	pr.supplier.Control(ismg.Limit(1, nil, ismg.Late(2*time.Second)))
	pr.send(ctx, t, messages(2, 0))
	if n := pr.customer.Counts(); n.TimedOut == 0 || n.TimedOut+n.Answered != 2 { // on a slow machine the second one may be late, too
		t.Errorf("counts %+v", n)
	}
	if err := pr.customer.Wait(ctx, func(c sp.Counts) bool { return c.Accepted == 2 }); err != nil {
		t.Fatal(err)
	}
	if s := pr.customer.Record().Sent[0]; s.State != sp.TimedOut || !s.Accepted() || s.MsgID == 0 {
		t.Errorf("late answer %+v", s)
	}
}

// TestCuts loses a connection with SUBMITs outstanding in every way: they are
// Unanswered and not sent again, the supplier has accepted them, and their
// reports come on the connection that is left.
func TestCuts(t *testing.T) {
	t.Parallel()
	for _, how := range []ismg.Cut{ismg.RST, ismg.FIN, ismg.Silence} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			const n = 16
			p := profile()
			p.Behaviour.SubmitRTT = ismg.FixedAt(300 * time.Millisecond)
			p.Behaviour.ReceiptDelay = ismg.FixedAt(10 * time.Millisecond)
			pr := start(t, p, ismg.Options{}, sp.Config{
				Connections: 2, Window: 32, MinBackoff: 10 * time.Second, MaxBackoff: 10 * time.Second, ResponseTimeout: 700 * time.Millisecond,
			})
			ctx := limit(t)
			pr.ready(ctx, t, 2)
			if err := pr.customer.Send(ctx, messages(n, 0), pr.clock.Now()); err != nil {
				t.Fatal(err)
			}
			eventually(ctx, t, "all received", func() bool { return len(pr.supplier.Record().Submits) == n })
			victim := pr.supplier.Live()[0]
			was, err := pr.supplier.Cut(victim.ID, how)
			if err != nil || was.InFlight != n/2 {
				t.Fatalf("%d outstanding at the cut, want %d; %v", was.InFlight, n/2, err)
			}
			if live := pr.supplier.Live(); len(live) != 1 {
				t.Fatalf("%d live after the cut", len(live))
			}
			if err := pr.customer.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			pr.receipts(ctx, t, n)
			c := pr.customer.Counts()
			lost := c.Unanswered
			if how == ismg.Silence {
				lost = c.TimedOut
			}
			if c.Answered != n/2 || lost != n/2 || c.Receipts != n {
				t.Errorf("counts %+v", c)
			}
			r := pr.supplier.Record()
			if r.Conns[0].Lost+r.Conns[1].Lost != n/2 {
				t.Errorf("lost %d and %d, want %d in all", r.Conns[0].Lost, r.Conns[1].Lost, n/2)
			}
			if got := pr.supplier.Counts()[0]; got.Submits != n || got.Accepted != n || got.Reports != n || got.Live != 1 {
				t.Errorf("supplier's counts %+v", got)
			}
			if len(r.Submits) != n {
				t.Errorf("%d submits, want %d: something was sent again", len(r.Submits), n)
			}
			for _, s := range r.Submits {
				if !s.Accepted() || (s.Conn == victim.ID) != (s.Sent == 0) {
					t.Errorf("submit %+v", s)
				}
			}
			if how == ismg.Silence {
				before := pr.supplier.Record().Conns[0]
				if before.Silent == 0 || before.Closed != 0 || before.BytesOut != victim.BytesOut {
					t.Errorf("silent connection %+v, was %+v", before, victim)
				}
				if _, err := pr.supplier.Cut(victim.ID, ismg.RST); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTerminate: the supplier says goodbye with SUBMITs outstanding. They are
// Unanswered, the customer answers the TERMINATE and comes back.
func TestTerminate(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Behaviour.SubmitRTT = ismg.FixedAt(time.Minute)
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 1, MinBackoff: time.Millisecond})
	ctx := limit(t)
	pr.ready(ctx, t, 1)
	if err := pr.customer.Send(ctx, messages(3, 0), pr.clock.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "all received", func() bool { return pr.supplier.Counts()[0].InFlight == 3 })
	if err := pr.supplier.Terminate(pr.supplier.Live()[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := pr.customer.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	// Back again, and the next message meets another behaviour.
	if err := pr.supplier.SetBehaviour(pairID, ismg.Behaviour{Deck: ismg.DeckSpec{Block: 1, Results: map[uint32]int{13: 1}}}); err != nil {
		t.Fatal(err)
	}
	pr.ready(ctx, t, 1)
	pr.send(ctx, t, messages(1, 0))
	r := pr.customer.Record()
	if n := pr.customer.Counts(); n.Unanswered != 3 || n.Answered != 1 || r.Sent[3].Result != 13 {
		t.Errorf("counts %+v, last result %d", n, r.Sent[3].Result)
	}
	if r.Conns[0].Reason != "terminated by peer" || len(r.Conns) != 2 {
		t.Errorf("connections %+v", r.Conns)
	}
	if err := pr.supplier.SetBehaviour(pairID, ismg.Behaviour{LateBy: -1}); err == nil {
		t.Error("an impossible behaviour was taken")
	}
}

// TestCustomerFaults: mute, offline, and a cut from the customer's side.
func TestCustomerFaults(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Timers.DeliverTimeout = 30 * time.Millisecond
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 2, MinBackoff: time.Millisecond})
	ctx := limit(t)
	pr.ready(ctx, t, 2)

	pr.customer.SetMute(true)
	pr.send(ctx, t, messages(1, 0))
	pr.receipts(ctx, t, 3) // again and again
	pr.customer.SetMute(false)
	eventually(ctx, t, "acknowledged", func() bool {
		receipts := pr.customer.Record().Receipts
		return pr.supplier.Record().Reports[0].Acked != 0 && receipts[len(receipts)-1].Acked != 0
	})
	r := pr.customer.Record()
	if r.Receipts[0].Acked != 0 || r.Receipts[len(r.Receipts)-1].Acked == 0 || r.Receipts[2].Copy != 2 {
		t.Errorf("receipts %+v", r.Receipts)
	}

	pr.customer.SetOffline(true)
	eventually(ctx, t, "gone", func() bool { return len(pr.supplier.Live()) == 0 })
	id, err := pr.supplier.SendUplink(pairID, "13800138000", "10690001", "TD")
	if err != nil {
		t.Fatal(err)
	}
	pr.customer.SetOffline(false)
	pr.ready(ctx, t, 2)
	if err := pr.customer.Wait(ctx, func(c sp.Counts) bool { return c.Uplinks == 1 }); err != nil {
		t.Fatal(err)
	}
	if u := pr.customer.Record().Uplinks[0]; u.DeliverID != id || string(u.Content) != "TD" || u.Source != "13800138000" {
		t.Errorf("uplink %+v", u)
	}

	if !pr.customer.Cut(1, true) || pr.customer.Cut(7, true) {
		t.Error("cut of a live connection and of none")
	}
	pr.ready(ctx, t, 2)
	if n := len(pr.customer.Record().Conns); n != 5 {
		t.Errorf("%d connections in all, want 2 + 2 + 1", n)
	}
}

func TestPinnedAndGroup(t *testing.T) {
	t.Parallel()
	pr := start(t, profile(), ismg.Options{}, sp.Config{Connections: 3})
	ctx := limit(t)
	pr.ready(ctx, t, 3)
	list := messages(9, 0)
	for i := range list {
		list[i].Conn = 1 + i%3
	}
	list[0].Also = []string{"13900000001", "13900000002"}
	pr.send(ctx, t, list)
	pr.receipts(ctx, t, 11)
	r := pr.customer.Record()
	index := map[uint64]int{}
	for _, c := range r.Conns {
		index[c.ID] = c.Index
	}
	for i, s := range r.Sent {
		if index[s.Conn] != i%3 {
			t.Errorf("message %d on connection %d", i, index[s.Conn])
		}
	}
	group := r.Sent[0]
	numbers := map[uint64]string{}
	for _, receipt := range r.Receipts {
		numbers[receipt.MsgID] = receipt.Number
	}
	if group.Count != 3 || numbers[group.MsgID+1] != "13900000001" || numbers[group.MsgID+2] != "13900000002" {
		t.Errorf("group %+v, receipts %v", group, numbers)
	}
}

func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	pr := start(t, profile(), ismg.Options{}, sp.Config{ID: pairID, Secret: "wrong", MinBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond})
	ctx := limit(t)
	eventually(ctx, t, "three refusals", func() bool { return len(pr.customer.Record().Refused) >= 3 })
	if r := pr.customer.Record(); r.Refused[0].Status != 3 || len(r.Conns) != 0 {
		t.Errorf("refused %+v", r.Refused)
	}
	if _, err := sp.New(sp.Config{ID: "toolong"}, pr.clock); err == nil {
		t.Error("an id of seven octets was taken")
	}
}

// TestSameSeed: two runs of the same messages differ in nothing that is drawn.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	type drawn struct {
		fate ismg.Fate
		hold int64
	}
	run := func(connections int) map[uint64]drawn {
		pr := start(t, deckProfile(), ismg.Options{}, sp.Config{Connections: connections, Window: 16})
		ctx := limit(t)
		pr.ready(ctx, t, connections)
		pr.send(ctx, t, messages(300, 100*time.Millisecond))
		got := map[uint64]drawn{}
		for _, s := range pr.supplier.Record().Submits {
			got[s.Key] = drawn{s.Fate, s.Hold}
		}
		return got
	}
	one, other := run(1), run(4)
	if len(one) != 300 || !maps.Equal(one, other) {
		t.Errorf("%d and %d messages drawn, not the same", len(one), len(other))
	}
}

// BenchmarkPair sends b.N messages with a receipt each over 4 × 32, as fast as
// the windows allow, and reports the CPU both sides and the kernel took.
func BenchmarkPair(b *testing.B) {
	p := profile()
	p.Behaviour.SubmitRTT = ismg.FixedAt(5 * time.Millisecond)
	p.Behaviour.ReceiptDelay = ismg.FixedAt(20 * time.Millisecond)
	pr := start(b, p, ismg.Options{}, sp.Config{Connections: 4, Window: 32, MaxOutstanding: b.N + 1})
	ctx := context.Background()
	pr.ready(ctx, b, 4)
	list := messages(b.N, 0)
	runtime.GC()
	before := cpu(b)
	b.ReportAllocs()
	b.ResetTimer()
	pr.send(ctx, b, list)
	pr.receipts(ctx, b, b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/msg")
}

// BenchmarkPaced offers 2,000 messages a second, evenly.
func BenchmarkPaced(b *testing.B) {
	p := deckProfile()
	pr := start(b, p, ismg.Options{}, sp.Config{Connections: 4, Window: 32})
	ctx := context.Background()
	pr.ready(ctx, b, 4)
	list := messages(b.N, time.Duration(b.N)*time.Second/2000)
	runtime.GC()
	before := cpu(b)
	b.ResetTimer()
	pr.send(ctx, b, list)
	b.StopTimer()
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/msg")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
