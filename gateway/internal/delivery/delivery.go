package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Links are the live connections of this process's customers.
type Links interface {
	// Each calls f for every application with live connections.
	Each(f func(app int32, links []*session.Session))
	// Unwritten says that the SUBMIT_RESP of this Msg_Id may still be written, and is not yet.
	Unwritten(id cmpp.MsgID) bool
	// OnWritten sets the function that is told the Msg_Ids for which Unwritten said yes and would now say no.
	OnWritten(f func(ids []cmpp.MsgID))
	// OnStray sets the function that takes answers to no DELIVER of the connection on which they came.
	OnStray(f func(app int32, p *cmpp.DeliverResp))
	// OnChange sets the function called after a login and whenever a connection has free slots again.
	OnChange(f func(login bool))
}

// Waker is the part of the wake bus that delivery uses.
type Waker interface {
	Subscribe(topic string) <-chan struct{}
}

// Options of a Delivery; all fields are required.
type Options struct {
	Config   config.Delivery
	Pool     *pgxpool.Pool
	Node     *store.Node
	Wake     Waker
	Sessions Links
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Delivery serves the connections of one process. Create it with New, start it once with Run.
type Delivery struct {
	Options

	metrics *metrics
	nudge   <-chan struct{}
	login   chan struct{}
	room    chan struct{}
	retry   chan struct{} // the finisher put rows back
	done    chan struct{} // outcomes wait for the finisher

	apps map[int32]*queue // claimer only
	turn int32            // claimer only: the application claimed for last
	// claimer only: the claim that is not answered; 0 = none
	claiming int64

	mu       sync.Mutex
	flights  map[int64]*flight        // by row
	parked   map[cmpp.MsgID][]*flight // claimed, waiting for the SUBMIT_RESP; see park
	outcomes outcomes
	again    again
}

// again is when rows that were put back may be claimed.
type again struct{ first, last time.Time }

// New makes a Delivery, registers its metrics and subscribes to what wakes it.
func New(o Options) *Delivery {
	d := &Delivery{
		Options: o, nudge: o.Wake.Subscribe(wake.Deliveries), login: make(chan struct{}, 1), room: make(chan struct{}, 1),
		retry: make(chan struct{}, 1), done: make(chan struct{}, 1), apps: make(map[int32]*queue), flights: make(map[int64]*flight),
		parked: make(map[cmpp.MsgID][]*flight),
	}
	d.metrics = newMetrics(o.Registry, d)
	o.Sessions.OnChange(func(login bool) {
		if login {
			poke(d.login)
		} else {
			poke(d.room)
		}
	})
	o.Sessions.OnWritten(d.written)
	o.Sessions.OnStray(d.stray)
	return d
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run delivers until ctx is done, which is no error.
func (d *Delivery) Run(ctx context.Context) error {
	finish, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var finisher, keeper sync.WaitGroup
	finisher.Go(func() { d.finish(finish) })
	keeper.Go(func() { d.keep(ctx) })
	if d.free(ctx) {
		d.claims(ctx)
	}
	keeper.Wait()
	d.land()
	stop()
	finisher.Wait()
	return nil
}

const (
	landWait = 2 * time.Second
	landLook = 10 * time.Millisecond
)

// land lets go of what is parked and waits a little for the outcomes of what is in flight.
func (d *Delivery) land() {
	d.unpark(0, func(*flight) bool { return true })
	limit := time.NewTimer(landWait)
	defer limit.Stop()
	look := time.NewTicker(landLook)
	defer look.Stop()
	for d.inFlight() > 0 {
		select {
		case <-limit.C:
			return
		case <-look.C:
		}
	}
}

func (d *Delivery) inFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.flights)
}

const failPause = 500 * time.Millisecond

// free gives back what an earlier life of this node had claimed; false when ctx ended before.
func (d *Delivery) free(ctx context.Context) bool {
	for {
		tag, err := d.Pool.Exec(ctx, store.DeliveryFree, d.Node.Number)
		if err == nil {
			if n := tag.RowsAffected(); n > 0 {
				d.Log.Info("deliveries of an earlier life freed", slog.Int64("rows", n))
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		d.Log.Warn("deliveries of an earlier life not freed, trying again", slog.Any("error", err))
		wait(ctx, failPause)
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
