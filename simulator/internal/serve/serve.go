package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"cmppgateway/simulator/internal/profile"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
	"cmppgateway/simulator/sp"
)

// Options of a run.
type Options struct {
	// Statement is the file to write the suppliers' daily statement to at the
	// end; empty means none.
	Statement string
	// Log receives what happens; never recipients or texts.
	Log *slog.Logger
	// Listening is called once with the addresses in use; HTTP may be empty.
	Listening func(suppliers, http string)
}

// Summary counts a finished run.
type Summary struct {
	Submits, Accepted, Refused, Answered int
	Reports, ReportsAcked                int
	Violations                           int
	Customers                            sp.Counts // sum over the customers
}

// String is the summary in one line.
func (s Summary) String() string {
	line := fmt.Sprintf("suppliers: submits=%d accepted=%d refused=%d answered=%d reports=%d acked=%d violations=%d",
		s.Submits, s.Accepted, s.Refused, s.Answered, s.Reports, s.ReportsAcked, s.Violations)
	if s.Customers.Fired > 0 {
		c := s.Customers
		line += fmt.Sprintf("; customers: offered=%d accepted=%d answered=%d timed_out=%d unanswered=%d not_sent=%d receipts=%d duplicates=%d",
			c.Fired, c.Accepted, c.Answered, c.TimedOut, c.Unanswered, c.NotSent, c.Receipts, c.DuplicateReceipts)
	}
	return line
}

// Run serves f until ctx is done or its duration is over. It stops the
// customers first, so that what they are owed can still arrive, then the
// suppliers, and writes the statement last.
func Run(ctx context.Context, f *profile.File, o Options) (Summary, error) {
	if f.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Duration)
		defer cancel()
	}
	clock := simclock.New()
	suppliers, err := ismg.New(f.Profile, clock, ismg.Options{Log: o.Log})
	if err != nil {
		return Summary{}, fmt.Errorf("suppliers: %w", err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return Summary{}, fmt.Errorf("suppliers: %w", err)
	}
	customers, err := newCustomers(f, ln.Addr().String(), clock, o.Log)
	if err != nil {
		_ = ln.Close()
		return Summary{}, err
	}
	view, err := newView(ctx, f, suppliers, customers)
	if err != nil {
		_ = ln.Close()
		return Summary{}, err
	}

	// Suppliers outlive customers, hence a context of their own.
	up, down := context.WithCancel(context.WithoutCancel(ctx))
	defer down()
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var first sync.Once
	fail := func(err error) {
		if err != nil {
			first.Do(func() { failed = err })
			cancel()
		}
	}
	var lower, upper sync.WaitGroup
	lower.Go(func() { fail(suppliers.Serve(up, ln)) })
	lower.Go(func() { fail(view.serve(up)) })
	for i := range customers {
		upper.Go(func() { fail(customers[i].Run(run)) })
		upper.Go(func() { fail(drive(run, customers[i], &f.Customers[i], clock)) })
	}
	o.Listening(ln.Addr().String(), view.addr())
	<-run.Done()
	upper.Wait()
	down()
	lower.Wait()

	if o.Statement != "" {
		if err := writeStatement(o.Statement, suppliers); err != nil && failed == nil {
			failed = err
		}
	}
	return summarize(suppliers, customers), failed
}

func newCustomers(f *profile.File, suppliers string, clock *simclock.Clock, log *slog.Logger) ([]*sp.Client, error) {
	var list []*sp.Client
	for i := range f.Customers {
		c := &f.Customers[i]
		addr := c.Addr
		if addr == "" {
			addr = suppliers
		}
		client, err := sp.New(sp.Config{
			Addr: addr, ID: c.ID, Secret: c.Secret, Version: c.Version, Connections: c.Connections, Window: c.Window, Log: log,
		}, clock)
		if err != nil {
			return nil, err
		}
		list = append(list, client)
	}
	return list, nil
}

// drive offers the load of one customer as soon as it is connected.
func drive(ctx context.Context, client *sp.Client, c *profile.Customer, clock *simclock.Clock) error {
	n := c.Messages()
	due := sp.Even(n, c.Hold)
	if c.Arrivals == "poisson" {
		due = sp.Poisson(c.Numbers, n, c.Hold)
	}
	messages := make([]sp.Message, n)
	for i := range messages {
		key := c.Numbers + uint64(i)
		messages[i] = sp.Message{
			Due: due[i], Key: key, Number: strconv.FormatUint(key, 10), Content: []byte(c.Text), Registered: 1, SrcID: c.SrcID,
		}
	}
	err := client.Ready(ctx, max(c.Connections, 1))
	if err == nil {
		err = client.Send(ctx, messages, clock.Now())
	}
	if ctx.Err() != nil {
		err = nil // the run is over; what was not sent is on record
	}
	return err
}

// view is the HTTP view and control; without an address it serves nothing.
type view struct {
	ln     net.Listener
	server *http.Server
}

func newView(ctx context.Context, f *profile.File, suppliers *ismg.Server, customers []*sp.Client) (*view, error) {
	addr := f.HTTP
	if addr == "" {
		return &view{}, nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("http view: %w", err)
	}
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client went away; nobody to tell
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"status": "ok", "supplier_links": len(suppliers.Live())})
	})
	mux.HandleFunc("GET /records", func(w http.ResponseWriter, _ *http.Request) {
		all := struct {
			Suppliers ismg.Record
			Customers []sp.Record
		}{Suppliers: suppliers.Record()}
		for _, c := range customers {
			all.Customers = append(all.Customers, c.Record())
		}
		reply(w, all)
	})
	orders := &control{suppliers: suppliers, customers: customers}
	for i := range f.Customers {
		orders.files = append(orders.files, f.Customers[i].ID)
	}
	mux.Handle("POST /control", orders)
	return &view{ln: ln, server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}, nil
}

func (v *view) addr() string {
	if v.ln == nil {
		return ""
	}
	return v.ln.Addr().String()
}

func (v *view) serve(ctx context.Context) error {
	if v.ln == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = v.server.Close() })
	defer stop()
	if err := v.server.Serve(v.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http view: %w", err)
	}
	return nil
}

func writeStatement(path string, suppliers *ismg.Server) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	return errors.Join(suppliers.WriteStatement(file), file.Close())
}

func summarize(suppliers *ismg.Server, customers []*sp.Client) Summary {
	var s Summary
	r := suppliers.Record()
	for i := range r.Submits {
		sub := &r.Submits[i]
		s.Submits++
		if sub.Accepted() {
			s.Accepted++
		} else {
			s.Refused++
		}
		if sub.Sent != 0 {
			s.Answered++
		}
	}
	for i := range r.Reports {
		if r.Reports[i].First != 0 {
			s.Reports++
		}
		if r.Reports[i].Acked != 0 {
			s.ReportsAcked++
		}
	}
	s.Violations = len(r.Violations)
	for _, c := range customers {
		n := c.Counts()
		sum := &s.Customers
		sum.Fired += n.Fired
		sum.Accepted += n.Accepted
		sum.Answered += n.Answered
		sum.TimedOut += n.TimedOut
		sum.Unanswered += n.Unanswered
		sum.NotSent += n.NotSent
		sum.Receipts += n.Receipts
		sum.DuplicateReceipts += n.DuplicateReceipts
		sum.Uplinks += n.Uplinks
	}
	return s
}
