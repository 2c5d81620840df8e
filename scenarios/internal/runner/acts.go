package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// act is a fault made of functions. Its proofs come from the other side: what a
// supplier does is seen at customers, suppliers' counts or the gateway, never taken
// from the switch that was thrown.
type act struct {
	name   string
	inject func(ctx context.Context) error
	revert func(ctx context.Context) error
	// here and over return what was seen, or an error as long as it is not.
	here, over func(ctx context.Context) (string, error)
	mend       time.Duration

	done bool
	seen []string
}

func (a *act) Name() string                     { return a.name }
func (a *act) Inject(ctx context.Context) error { return a.inject(ctx) }
func (a *act) MendWithin() time.Duration        { return max(a.mend, 10*time.Second) }
func (a *act) proof() string                    { return strings.Join(a.seen, "; ") }

func (a *act) Revert(ctx context.Context) error {
	if a.done || a.revert == nil {
		return nil
	}
	err := a.revert(ctx)
	a.done = err == nil
	return err
}

func (a *act) Verify(ctx context.Context, want bool) error {
	f := a.over
	if want {
		f = a.here
	}
	if f == nil {
		return nil
	}
	seen, err := f(ctx)
	if err == nil && seen != "" {
		a.seen = append(a.seen, seen)
	}
	return err
}

// act makes the fault that a schedule names.
func (r *run) act(x spec.Injection) (injection, error) {
	a := &act{name: x.Fault}
	switch x.Fault {
	case spec.ConnectionRST:
		r.cut(a, &x, ismg.RST)
	case spec.ConnectionFIN:
		r.cut(a, &x, ismg.FIN)
	case spec.ConnectionSilence:
		r.cut(a, &x, ismg.Silence)
	case spec.SupplierTerminates:
		r.cut(a, &x, ismg.NoCut)
	case spec.Scale:
		r.scale(a, &x)
	case spec.ChannelDisabled:
		r.disable(a, &x)
	case spec.EnterpriseDisabled:
		r.stopEnterprise(a, &x)
	case spec.TopUp:
		r.topUp(a, &x)
	case spec.QuotaRaised:
		a.inject = func(ctx context.Context) error { return r.apply(ctx, change{policyQuotaSQL, []any{x.Value}}) }
	case spec.Replay:
		r.replay(a, &x)
	case spec.SupplierRefuses:
		r.refuseLogins(a, &x)
	case spec.CustomerOffline, spec.CustomerMute, spec.CustomerSlow, spec.CustomerStorm:
		r.customer(a, &x)
	case spec.CallbackPool, spec.CallbackTimeout, spec.CallbackBadEvent:
		r.callback(a, &x)
	default:
		control := controlOf(&x)
		if control == nil {
			return nil, fmt.Errorf("no fault %q", x.Fault)
		}
		r.control(a, &x, control)
	}
	return a, nil
}

// accounts are the logins of the channels that a fault is about.
func (r *run) accounts(x *spec.Injection) []string {
	all := channels(r.s)
	var list []string
	for _, i := range r.s.Channels(x.Channel) {
		list = append(list, all[i].Login)
	}
	return list
}

// cut ends the oldest connection of the first account that has one, or says TERMINATE
// on it.
func (r *run) cut(a *act, x *spec.Injection, how ismg.Cut) {
	var conn ismg.Conn
	gone := func() bool {
		for _, c := range r.suppliers.Live() {
			if c.ID == conn.ID {
				return false
			}
		}
		return true
	}
	a.inject = func(context.Context) error {
		for _, account := range r.accounts(x) {
			for _, c := range r.suppliers.Live() {
				if c.Account != account {
					continue
				}
				conn = c
				if how == ismg.NoCut {
					return r.suppliers.Terminate(c.ID)
				}
				var err error
				conn, err = r.suppliers.Cut(c.ID, how)
				return err
			}
		}
		return errors.New("no supplier connection is live")
	}
	a.here = func(context.Context) (string, error) {
		if !gone() {
			return "", fmt.Errorf("connection %d is live", conn.ID)
		}
		return fmt.Sprintf("connection %d of %s is gone with %d SUBMITs unanswered on it", conn.ID, conn.Account, conn.InFlight), nil
	}
}

// poolsThere waits until the gateway has the pools that are wanted.
func (r *run) poolsThere(ctx context.Context) error {
	if err := r.linksBack(ctx, linksLimit); err != nil {
		return &lostError{err}
	}
	return nil
}

// liveAs says whether the suppliers see as many connections as channels are to have.
func (r *run) liveAs(which []int) (string, error) {
	live := map[string]int{}
	for _, c := range r.suppliers.Counts() {
		live[c.Account] = c.Live
	}
	var seen []string
	wanted := r.wanted()
	for _, i := range which {
		x := &wanted[i]
		want := x.effectivePool()
		if live[x.Login] != want.Connections {
			return "", fmt.Errorf("%s has %d connections, want %d", x.Name, live[x.Login], want.Connections)
		}
		seen = append(seen, fmt.Sprintf("%s %s", x.Name, want))
	}
	return "the suppliers see " + strings.Join(seen, ", "), nil
}

// scale switches channels to the first pool of To, and back when it is the last.
func (r *run) scale(a *act, x *spec.Injection) {
	which := r.s.Channels(x.Channel)
	to := func(ctx context.Context, p spec.Pool) error {
		if err := r.switchTo(ctx, which, func(s *setting) { s.Pool = p }); err != nil {
			return err
		}
		return r.poolsThere(ctx)
	}
	a.mend = linksLimit + 5*time.Second
	a.inject = func(ctx context.Context) error { return to(ctx, x.To[0]) }
	a.here = func(context.Context) (string, error) { return r.liveAs(which) }
	if len(x.To) == 1 {
		a.revert = func(ctx context.Context) error { return to(ctx, r.s.Suppliers.Pool()) }
		a.over = a.here
	}
}

// disable disables channels: from its proof on, no SUBMIT may reach them.
func (r *run) disable(a *act, x *spec.Injection) {
	which := r.s.Channels(x.Channel)
	disabled := map[string]bool{}
	for _, account := range r.accounts(x) {
		disabled[account] = true
	}
	got := func() int {
		n := 0
		for _, c := range r.suppliers.Counts() {
			if disabled[c.Account] {
				n += c.Submits
			}
		}
		return n
	}
	before := 0
	a.mend = linksLimit + 5*time.Second
	a.inject = func(ctx context.Context) error {
		if err := r.switchTo(ctx, which, func(s *setting) { s.Enabled = false }); err != nil {
			return err
		}
		return r.poolsThere(ctx)
	}
	a.here = func(context.Context) (string, error) {
		seen, err := r.liveAs(which)
		before = got()
		return seen, err
	}
	a.revert = func(ctx context.Context) error {
		n := got() - before
		a.seen = append(a.seen, fmt.Sprintf("%d SUBMITs reached them while disabled", n))
		err := r.switchTo(ctx, which, func(s *setting) { s.Enabled = true })
		if err == nil {
			err = r.poolsThere(ctx)
		}
		if n > 0 {
			err = errors.Join(&lostError{fmt.Errorf("%d SUBMITs reached channels that were disabled", n)}, err)
		}
		return err
	}
	a.over = func(context.Context) (string, error) { return r.liveAs(which) }
}

// lockClass is the class of the advisory lock that a workflow takes for an enterprise.
const lockClass = 7

// stopEnterprise disables an enterprise while messages of it wait in the inbox: its
// workflow is held up by the lock that its workers take.
func (r *run) stopEnterprise(a *act, x *spec.Injection) {
	at := r.enterprises(x.Enterprise)[0]
	id := int32(at + 1)
	status := func(ctx context.Context, status int16) error {
		return r.apply(ctx, change{enterpriseSetSQL, []any{id, status}})
	}
	waiting := int64(0)
	a.mend = linksLimit
	a.inject = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, r.files.Postgres)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it only holds the lock
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", lockClass, id); err != nil {
			return err
		}
		err = poll(ctx, linksLimit, func(ctx context.Context) (string, error) {
			if err := tx.QueryRow(ctx, waitingSQL, id).Scan(&waiting); err != nil {
				return "", err
			}
			if waiting < x.Value {
				return fmt.Sprintf("%d messages of %s wait in the inbox, want %d", waiting, x.Enterprise, x.Value), nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
		return status(ctx, 2)
	}
	a.here = func(ctx context.Context) (string, error) {
		if n := r.customers[at].Counts().Live; n > 0 {
			return "", fmt.Errorf("%d connections of its customer are live", n)
		}
		left := int64(0)
		conn, err := pgx.Connect(ctx, r.files.Postgres)
		if err != nil {
			return "", err
		}
		defer conn.Close(ctx)
		if err := conn.QueryRow(ctx, waitingSQL, id).Scan(&left); err != nil {
			return "", err
		}
		if left > 0 {
			return "", fmt.Errorf("%d of its messages are in the inbox", left)
		}
		return fmt.Sprintf("%d messages waited in the inbox; none does, and no connection of %s is live", waiting, x.Enterprise), nil
	}
	a.revert = func(ctx context.Context) error { return status(ctx, 1) }
	a.over = func(context.Context) (string, error) {
		if n := r.customers[at].Counts().Live; n < r.s.Enterprises[at].Connections {
			return "", fmt.Errorf("%d of %d connections of its customer are live", n, r.s.Enterprises[at].Connections)
		}
		return "its customer is logged in again", nil
	}
}

// topUp adds to an account while messages are refused for want of balance.
func (r *run) topUp(a *act, x *spec.Injection) {
	at := r.enterprises(x.Enterprise)[0]
	a.inject = func(ctx context.Context) error {
		return r.apply(ctx, change{topUpSQL, []any{int32(at + 1), x.Value, "scenario"}})
	}
}

// replay repeats what suppliers were acknowledged.
func (r *run) replay(a *act, x *spec.Injection) {
	n := 0
	a.inject = func(context.Context) error {
		for _, account := range r.accounts(x) {
			k, err := r.suppliers.Replay(account, int(x.Value))
			if err != nil {
				return err
			}
			n += k
		}
		if n == 0 {
			return errors.New("nothing was acknowledged yet")
		}
		return nil
	}
	a.here = func(context.Context) (string, error) { return fmt.Sprintf("%d DELIVERs sent again", n), nil }
}

// refuseLogins cuts an account's connections and refuses its logins.
func (r *run) refuseLogins(a *act, x *spec.Injection) {
	accounts := r.accounts(x)
	denied := func() int {
		n := 0
		for _, c := range r.suppliers.Counts() {
			for _, account := range accounts {
				if c.Account == account {
					n += c.Denied
				}
			}
		}
		return n
	}
	before := 0
	all := func(status uint32) error {
		var err error
		for _, account := range accounts {
			err = errors.Join(err, r.suppliers.RefuseLogins(account, status))
		}
		return err
	}
	a.inject = func(context.Context) error {
		before = denied()
		err := all(uint32(x.Value))
		for _, c := range r.suppliers.Live() {
			for _, account := range accounts {
				if c.Account == account {
					_, e := r.suppliers.Cut(c.ID, ismg.RST)
					err = errors.Join(err, e)
				}
			}
		}
		return err
	}
	a.here = func(context.Context) (string, error) {
		if denied() == before {
			return "", errors.New("no login was refused")
		}
		return fmt.Sprintf("logins are refused with %d", x.Value), nil
	}
	a.revert = func(context.Context) error { return all(0) }
}

// controlOf is what a supplier does to SUBMITs, nil for other faults.
func controlOf(x *spec.Injection) ismg.Control {
	again := 300 * time.Millisecond
	switch x.Fault {
	case spec.SupplierLate:
		return ismg.Late(time.Duration(x.Value) * time.Millisecond)
	case spec.SupplierTwice:
		return ismg.Twice()
	case spec.SupplierDisorder:
		return ismg.Disorder(time.Duration(x.Value) * time.Millisecond)
	case spec.SupplierSilent:
		return ismg.Silent()
	case spec.SupplierWrongSeq:
		return ismg.WrongSeq()
	case spec.SupplierRejects:
		return ismg.Answer(uint32(x.Value))
	case spec.ReceiptEarly:
		return ismg.EarlyReceipt()
	case spec.ReceiptTwice:
		return ismg.ReceiptAgain(again)
	case spec.ReceiptContradict:
		return ismg.Contradict("UNDELIV", again)
	case spec.ReceiptElsewhere:
		return ismg.Elsewhere()
	case spec.ReceiptNever:
		return ismg.NoReceipts()
	case spec.ReceiptWrongSize:
		return ismg.WrongSize()
	}
	return nil
}

// control puts a behaviour in force for a share of the SUBMITs. It is proved by the
// SUBMITs that met it: they are on the suppliers' record.
func (r *run) control(a *act, x *spec.Injection, f ismg.Control) {
	accounts := map[string]bool{}
	for _, account := range r.accounts(x) {
		accounts[account] = true
	}
	var mu sync.Mutex
	met := 0
	counted := func(s *ismg.Submit, p *ismg.Plan) bool {
		mu.Lock()
		met++
		mu.Unlock()
		return f(s, p)
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return met
	}
	var remove func()
	a.inject = func(context.Context) error {
		remove = r.suppliers.Control(ismg.Every(x.Every, func(s *ismg.Submit) bool { return accounts[s.Account] }, counted))
		return nil
	}
	a.here = func(context.Context) (string, error) {
		if count() == 0 {
			return "", errors.New("no SUBMIT has met it")
		}
		return "", nil
	}
	a.revert = func(context.Context) error {
		remove()
		a.seen = append(a.seen, fmt.Sprintf("%d SUBMITs met it", count()))
		return nil
	}
}

// customer has customers behave badly.
func (r *run) customer(a *act, x *spec.Injection) {
	which := r.enterprises(x.Enterprise)
	each := func(f func(c *sp.Client)) {
		for _, i := range which {
			f(r.customers[i])
		}
	}
	back := func(context.Context) (string, error) {
		for _, i := range which {
			if n := r.customers[i].Counts().Live; n < r.s.Enterprises[i].Connections {
				return "", fmt.Errorf("%s has %d of %d connections", r.s.Enterprises[i].ID, n, r.s.Enterprises[i].Connections)
			}
		}
		return "all their connections are live", nil
	}
	a.mend, a.over = linksLimit, back
	switch x.Fault {
	case spec.CustomerOffline:
		r.offline(a, which, each)
	case spec.CustomerMute:
		before := r.unacked(which)
		a.inject = func(context.Context) error {
			each(func(c *sp.Client) { c.SetMute(true) })
			return nil
		}
		a.here = func(context.Context) (string, error) {
			if r.unacked(which) == before {
				return "", errors.New("no DELIVER was left unanswered")
			}
			return "", nil
		}
		a.revert = func(context.Context) error {
			a.seen = append(a.seen, fmt.Sprintf("%d DELIVERs left unanswered", r.unacked(which)-before))
			each(func(c *sp.Client) { c.SetMute(false) })
			return nil
		}
	case spec.CustomerSlow:
		r.slow(a, x, which, each)
	case spec.CustomerStorm:
		r.storm(a, each)
	}
}

func (r *run) unacked(which []int) int {
	n := 0
	for _, i := range which {
		n += r.customers[i].Counts().Unacked
	}
	return n
}

// offline has customers log out and stay away; the gateway's count of sessions proves
// it.
func (r *run) offline(a *act, which []int, each func(func(*sp.Client))) {
	others := 0
	for _, e := range r.s.Enterprises {
		others += e.Connections
	}
	for _, i := range which {
		others -= r.s.Enterprises[i].Connections
	}
	a.inject = func(context.Context) error {
		each(func(c *sp.Client) { c.SetOffline(true) })
		return nil
	}
	a.here = func(ctx context.Context) (string, error) {
		m, err := scrape(ctx, r.http, "http://"+r.files.Admin+"/metrics")
		if err != nil {
			return "", err
		}
		if n := int(m.sum("cmppgw_inbound_sessions")); n > others {
			return "", fmt.Errorf("the gateway has %d sessions, want %d", n, others)
		}
		return fmt.Sprintf("the gateway has %d sessions", others), nil
	}
	a.revert = func(context.Context) error {
		each(func(c *sp.Client) { c.SetOffline(false) })
		return nil
	}
}

// slow has customers read slowly or not at all: answers that the gateway wrote do not
// arrive.
func (r *run) slow(a *act, x *spec.Injection, which []int, each func(func(*sp.Client))) {
	rate := int(x.Value)
	if rate == 0 {
		rate = -1
	}
	last := -1
	a.inject = func(context.Context) error {
		each(func(c *sp.Client) { c.SetSlow(rate) })
		return nil
	}
	a.here = func(context.Context) (string, error) {
		answered, open := 0, 0
		for _, i := range which {
			n := r.customers[i].Counts()
			answered += n.Answered
			open += n.InFlight
		}
		if rate < 0 && (answered != last || open == 0) {
			last = answered
			return "", errors.New("answers arrive")
		}
		return fmt.Sprintf("%d SUBMITs wait for answers that are not read", open), nil
	}
	a.revert = func(context.Context) error {
		each(func(c *sp.Client) { c.SetSlow(0) })
		return nil
	}
}

// stormEvery is how often all connections are reset in a storm.
const stormEvery = 300 * time.Millisecond

// storm resets all connections of customers again and again; they connect at once.
func (r *run) storm(a *act, each func(func(*sp.Client))) {
	var mu sync.Mutex
	rounds, cut := 0, 0
	stop := make(chan struct{})
	var wg sync.WaitGroup
	a.inject = func(context.Context) error {
		wg.Go(func() {
			tick := time.NewTicker(stormEvery)
			defer tick.Stop()
			for {
				n := 0
				each(func(c *sp.Client) { n += c.CutAll(true) })
				mu.Lock()
				cut += n
				if n > 0 {
					rounds++
				}
				mu.Unlock()
				select {
				case <-tick.C:
				case <-stop:
					return
				}
			}
		})
		return nil
	}
	a.here = func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if rounds < 3 {
			return "", fmt.Errorf("%d rounds of resets", rounds)
		}
		return "", nil
	}
	a.revert = func(context.Context) error {
		close(stop)
		wg.Wait()
		a.seen = append(a.seen, fmt.Sprintf("%d connections reset in %d rounds", cut, rounds))
		return nil
	}
}
