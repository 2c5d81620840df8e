package supplier

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// Settings gives the current settings; Changed is closed when there are newer ones.
type Settings interface {
	Current() *settings.Snapshot
	Changed() <-chan struct{}
}

// Wake gives nudges; a subscription lasts as long as the process.
type Wake interface {
	Subscribe(topic string) <-chan struct{}
}

// Options is what a Manager needs.
type Options struct {
	Config   config.Supplier
	Outbox   config.Outbox
	Drain    time.Duration // most time a stopping process waits for answers
	Pool     *pgxpool.Pool // role outbox
	Node     *store.Node
	Settings Settings
	Wake     Wake
	Redis    *redis.Client
	Events   *event.Queue // loaded
	Log      *slog.Logger
	Registry prometheus.Registerer
	Nudge    func() // called when the control entry has changed settings; nil = everybody polls
}

// Manager runs the pools of all channels this process owns.
type Manager struct {
	o       Options
	metrics *metrics
	sources *outbox.Metrics
	barrier *barrier

	stopping atomic.Bool
	started  time.Time
	news     chan struct{} // a pool has closed, or its channel went up or down
	breakers chan struct{} // a breaker has turned

	// of Run alone
	accounts map[int32]*limit
	nudges   map[int32]<-chan struct{}
	wg       sync.WaitGroup // pools

	mu    sync.Mutex
	pools map[int32]*pool
	idle  map[int32]Status // refused and waiting channels
	fence map[int32]int64
}

// New opens nothing before Run.
func New(o Options) *Manager {
	m := &Manager{
		o: o, started: time.Now(), news: make(chan struct{}, 1), breakers: make(chan struct{}, 1), accounts: make(map[int32]*limit), nudges: make(map[int32]<-chan struct{}),
		pools: make(map[int32]*pool), idle: make(map[int32]Status), fence: make(map[int32]int64),
	}
	m.metrics = newMetrics(m, o.Registry)
	m.sources = outbox.NewMetrics(o.Registry)
	m.barrier = newBarrier(o.Pool, o.Config, o.Node.Number, o.Log, m.metrics)
	o.Events.OnRoom(m.kickAll)
	return m
}

func (m *Manager) kickAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools {
		p.kick()
	}
}

// drainLimit bounds the drain time of a connection: a stopping process has its own.
func (m *Manager) drainLimit() time.Duration {
	if m.stopping.Load() {
		return m.o.Drain
	}
	return time.Hour
}

// Status lists all channels with their connections, by channel.
func (m *Manager) Status() []Status {
	m.mu.Lock()
	pools := slices.Collect(maps.Values(m.pools))
	list := slices.Collect(maps.Values(m.idle))
	fence := maps.Clone(m.fence)
	m.mu.Unlock()
	for _, p := range pools {
		s := p.status()
		s.Fence = fence[s.Channel]
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Status) int { return int(a.Channel - b.Channel) })
	return list
}

// Down lists the channels of this process that have had no usable connection for at least that long, refused ones included.
func (m *Manager) Down(atLeast time.Duration) []int32 {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	var down []int32
	for id, p := range m.pools {
		if p.down(now) >= atLeast.Seconds() {
			down = append(down, id)
		}
	}
	for id, s := range m.idle {
		if s.State == Refused {
			down = append(down, id)
		}
	}
	slices.Sort(down)
	return down
}

// Run opens the channels, follows the settings, and stops gracefully when ctx is done: no new submits, answers awaited for
// Options.Drain at most, rows surely not written made pending again, leases given up.
func (m *Manager) Run(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var wg sync.WaitGroup
	wg.Go(func() { m.barrier.run(work) })
	wg.Go(func() { m.adopt(ctx) })
	wg.Go(func() { m.publish(ctx) })
	m.follow(ctx)

	m.stopping.Store(true)
	last, cancel := context.WithTimeout(work, m.o.Drain+lastWait)
	defer cancel()
	m.mu.Lock()
	pools := slices.Collect(maps.Values(m.pools))
	m.mu.Unlock()
	for _, p := range pools {
		p.stop()
	}
	m.keep(work, pools)
	m.wg.Wait()
	m.barrier.finish(last)
	end()
	wg.Wait()
	return m.leave(context.WithoutCancel(ctx), slices.Sorted(maps.Keys(m.fence)))
}

// keep renews the leases until the pools are closed: nobody else may connect before.
func (m *Manager) keep(ctx context.Context, pools []*pool) {
	tick := time.NewTicker(m.o.Config.LeaseTime / 3)
	defer tick.Stop()
	for _, p := range pools {
		for !isDone(p) {
			select {
			case <-p.done:
			case <-tick.C:
				if _, _, err := m.lease(ctx, slices.Sorted(maps.Keys(m.fence))); err != nil {
					m.o.Log.Warn("channel leases not renewed", slog.Any("error", err))
				}
			}
		}
	}
}

// lastWait is for the last words of sessions and of the barrier, beyond the drain time.
const lastWait = 10 * time.Second

// follow keeps the pools in step with settings and leases until ctx is done.
func (m *Manager) follow(ctx context.Context) {
	tick := time.NewTicker(m.o.Config.LeaseTime / 3)
	defer tick.Stop()
	for ctx.Err() == nil {
		changed := m.o.Settings.Changed()
		m.reconcile(ctx, m.o.Settings.Current())
		select {
		case <-ctx.Done():
		case <-changed:
		case <-m.news:
		case <-tick.C:
		}
	}
}

// reconcile makes the pools what the settings ask for, as far as the leases allow. A pool that is closing keeps its lease.
func (m *Manager) reconcile(ctx context.Context, snap *settings.Snapshot) {
	wanted, refused := m.plan(snap)
	ours := slices.Collect(maps.Keys(wanted))
	var free []int32
	m.mu.Lock()
	for id, p := range m.pools {
		if isDone(p) {
			delete(m.pools, id)
			continue
		}
		if wanted[id] == nil {
			p.stop()
			ours = append(ours, id)
		}
	}
	for id := range m.fence {
		if wanted[id] == nil && m.pools[id] == nil {
			delete(m.fence, id)
			free = append(free, id)
		}
	}
	m.mu.Unlock()
	slices.Sort(ours)
	held, owners, err := m.lease(ctx, ours)
	if err == nil {
		err = m.leave(ctx, free)
	}
	if err != nil && ctx.Err() == nil {
		m.o.Log.Warn("channel leases not renewed", slog.Any("error", err))
	}

	idle := make(map[int32]Status)
	for id, reason := range refused {
		idle[id] = Status{Channel: id, Name: snap.Channels[id].Name, State: Refused, Detail: reason}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, acct := range wanted {
		ch := snap.Channels[id]
		fence, ok := held[id]
		p := m.pools[id]
		switch {
		case p != nil && p.owner != acct.ID: // its rates are the other account's: it closes, and opens anew
			p.stop()
		case ok:
			m.fence[id] = fence
			if p == nil {
				p = m.start(ctx, id, acct.ID, snap)
			}
			p.apply(ctx, snap, ch, acct)
		case held == nil: // no answer: what is open stays, for without PostgreSQL nobody else can take a lease either
			if p != nil {
				p.apply(ctx, snap, ch, acct)
			} else {
				idle[id] = Status{Channel: id, Name: ch.Name, State: Waiting, Detail: "lease not taken yet"}
			}
		case p != nil:
			if p.stop(); m.fence[id] != 0 {
				delete(m.fence, id)
				m.o.Log.Warn("channel lease lost", slog.Int("channel", int(id)), slog.String("owner", owners[id]))
			}
		default:
			idle[id] = Status{Channel: id, Name: ch.Name, State: Waiting, Detail: "held by " + owners[id]}
		}
	}
	m.tellChanges(idle)
	m.idle = idle
}

// tellChanges logs channels that have become refused or waiting, or for another reason. mu is held.
func (m *Manager) tellChanges(idle map[int32]Status) {
	for id, s := range idle {
		if m.idle[id].State == s.State && m.idle[id].Detail == s.Detail && m.idle[id].Name == s.Name {
			continue
		}
		say := m.o.Log.Info
		if s.State == Refused {
			say = m.o.Log.Error
		}
		say("channel not opened", slog.Int("channel", int(id)), slog.String("name", s.Name), slog.String("state", s.State.String()),
			slog.String("detail", s.Detail))
	}
}

func isDone(p *pool) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// start makes the pool of a channel whose lease is held. mu is held.
func (m *Manager) start(ctx context.Context, id, account int32, snap *settings.Snapshot) *pool {
	if m.accounts[account] == nil {
		m.accounts[account] = new(limit)
	}
	if m.nudges[id] == nil {
		m.nudges[id] = m.o.Wake.Subscribe(outbox.Topic(id))
	}
	p := &pool{
		m: m, id: id, owner: account, account: m.accounts[account], snap: snap, late: late{wake: make(chan struct{}, 1)}, wake: make(chan struct{}, 1), gate: make(chan struct{}, 1), done: make(chan struct{}),
		since: time.Now(),
	}
	p.breaker.restore(snap.Health.Breakers[id])
	p.src = outbox.NewSource(outbox.SourceOptions{
		Config: m.o.Outbox, Channel: id, Pool: m.o.Pool, Redis: m.o.Redis, Wake: m.nudges[id], Notify: p.kick, Metrics: m.sources, Log: m.o.Log,
		Leave: func(c *outbox.Command) bool {
			return m.o.Settings.Current().Of(c.EnterpriseID, c.AppID) != settings.NoStop
		},
		Held: func() []int32 { return m.o.Settings.Current().Held() },
	})
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	m.pools[id] = p
	m.wg.Go(func() {
		p.run(life)
		poke(m.news)
	})
	return p
}

// plan says which enabled channels may be opened, and why the others may not: the third of the three layers of
// capacity-plan §3.2, behind the admin API and the control entry.
func (m *Manager) plan(snap *settings.Snapshot) (wanted map[int32]*settings.SupplierAccount, refused map[int32]string) {
	wanted, refused = make(map[int32]*settings.SupplierAccount), make(map[int32]string)
	for id, ch := range snap.Channels {
		if !ch.Enabled {
			continue
		}
		if faults := snap.Refused[id]; len(faults) > 0 {
			refused[id] = said(faults)
			continue
		}
		if reason := m.unreachable(snap.Accounts[ch.AccountID]); reason != "" {
			refused[id] = reason
			continue
		}
		wanted[id] = snap.Accounts[ch.AccountID]
	}
	return wanted, refused
}

// unreachable says why this process may not connect to the account's address.
func (m *Manager) unreachable(acct *settings.SupplierAccount) string {
	host, _, err := net.SplitHostPort(acct.Addr)
	if err != nil {
		return fmt.Sprintf("addr %q: %v", acct.Addr, err)
	}
	if ip := net.ParseIP(host); !m.o.Config.AllowRemote && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Sprintf("addr %q: not on this machine, and remote suppliers are not allowed", acct.Addr)
	}
	return ""
}

func said(faults []settings.Fault) string {
	list := make([]string, len(faults))
	for i, f := range faults {
		list[i] = f.String()
	}
	return strings.Join(list, "; ")
}

// lease takes or renews the leases of channels; owners names who holds those not got.
func (m *Manager) lease(ctx context.Context, channels []int32) (held map[int32]int64, owners map[int32]string, err error) {
	held, owners = make(map[int32]int64), make(map[int32]string)
	if len(channels) == 0 {
		return held, owners, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.Config.LeaseTime/2)
	defer cancel()
	rows, err := m.o.Pool.Query(ctx, store.SupplierLease, channels, m.o.Node.Number, m.o.Node.Epoch, m.o.Config.LeaseTime, m.downFor(channels))
	if err != nil {
		return nil, nil, fmt.Errorf("lease channels: %w", err)
	}
	var id int32
	var fence int64
	if _, err = pgx.ForEachRow(rows, []any{&id, &fence}, func() error {
		held[id] = fence
		return nil
	}); err != nil {
		return nil, nil, fmt.Errorf("lease channels: %w", err)
	}
	if len(held) == len(channels) {
		return held, owners, nil
	}
	rows, err = m.o.Pool.Query(ctx, store.SupplierLeaseOwner, channels)
	if err != nil {
		return nil, nil, fmt.Errorf("owners of channels: %w", err)
	}
	var node int16
	var name string
	if _, err = pgx.ForEachRow(rows, []any{&id, &node, &name, nil}, func() error {
		owners[id] = fmt.Sprintf("node %d (%s)", node, name)
		return nil
	}); err != nil {
		return nil, nil, fmt.Errorf("owners of channels: %w", err)
	}
	return held, owners, nil
}

// downFor is for how many seconds each channel has had no usable connection, -1 = it has one: the core moves the commands of
// channels that are down for long.
func (m *Manager) downFor(channels []int32) []float64 {
	now := time.Now()
	down := make([]float64, len(channels))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, id := range channels {
		if p := m.pools[id]; p != nil {
			down[i] = p.down(now)
		}
	}
	return down
}

// leave gives leases up.
func (m *Manager) leave(ctx context.Context, channels []int32) error {
	if len(channels) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.Config.LeaseTime/2)
	defer cancel()
	if _, err := m.o.Pool.Exec(ctx, store.SupplierLeaseLeave, channels, m.o.Node.Number, m.o.Node.Epoch); err != nil {
		return fmt.Errorf("leave channel leases: %w", err)
	}
	return nil
}
