package runner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/load"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// measured is one message as the customers and the suppliers saw it. Times are on
// the shared clock; 0 means it did not happen.
type measured struct {
	sent       *sp.Sent
	enterprise int
	phase      int
	first      int64 // the supplier read its first SUBMIT
	held       int64 // time the suppliers really held it on its way
	reported   int64 // the supplier first wrote the report
	received   int64 // the customer read its first receipt
	copies     int64 // further receipts
}

// trace joins the records of customers and suppliers by number and Msg_Id.
func trace(w *verify.Witness, plan *load.Plan, starts []int64) []measured {
	seen := map[uint64][]*ismg.Submit{}
	for i := range w.Suppliers.Submits {
		s := &w.Suppliers.Submits[i]
		seen[s.Key] = append(seen[s.Key], s)
	}
	type id struct {
		account string
		msgID   uint64
	}
	reports := map[id]int64{}
	for i := range w.Suppliers.Reports {
		r := &w.Suppliers.Reports[i]
		if r.Copy == 0 && r.First != 0 {
			reports[id{r.Account, r.MsgID}] = r.First
		}
	}
	var list []measured
	for e := range w.Customers {
		c := &w.Customers[e]
		receipts := map[uint64]*sp.Receipt{}
		copies := map[uint64]int64{}
		for i := range c.Receipts {
			r := &c.Receipts[i]
			if r.Copy == 0 {
				receipts[r.MsgID] = r
			} else {
				copies[r.MsgID]++
			}
		}
		for i := range c.Sent {
			m := measured{sent: &c.Sent[i], enterprise: e}
			number := m.sent.Key & numberMask
			if m.phase = phaseOf(m.sent, plan, starts); m.phase < 0 {
				o, _ := plan.Origin(number)
				m.phase = o.Phase
			}
			tries := seen[number]
			slices.SortFunc(tries, func(a, b *ismg.Submit) int { return cmp.Compare(a.Recv, b.Recv) })
			for k, s := range tries {
				if k == 0 {
					m.first = s.Recv
				}
				if !s.Accepted() {
					m.held += max(0, s.Sent-s.Recv)
					continue
				}
				m.reported = reports[id{s.Account, s.MsgID}]
				if m.reported != 0 {
					m.held += max(0, m.reported-s.Recv)
				}
			}
			if m.sent.Accepted() {
				if r := receipts[m.sent.MsgID]; r != nil {
					m.received, m.copies = r.At, copies[m.sent.MsgID]
				}
			}
			list = append(list, m)
		}
	}
	return list
}

// numberMask cuts the count off the key of one of several messages to a number.
const numberMask = 1<<40 - 1

// phaseOf is the phase that a SUBMIT was due in; -1 when it was due in none.
func phaseOf(s *sp.Sent, plan *load.Plan, starts []int64) int {
	for i := range starts {
		if s.Due >= starts[i] && s.Due < starts[i]+int64(plan.Phases[i].Hold) {
			return i
		}
	}
	return -1
}

// added is the gateway's own share of the way from the customer's SUBMIT to the
// customer's receipt: what the suppliers held is subtracted. ok is false for a
// message that did not go the whole way.
func (m *measured) added() (ms float64, ok bool) {
	if m.received == 0 || m.reported == 0 || m.sent.Fire == 0 {
		return 0, false
	}
	return millis(m.received - m.sent.Fire - m.held), true
}

func millis(ns int64) float64 { return float64(ns) / 1e6 }

// sample is a set of latencies in milliseconds; it is sorted when asked.
type sample struct{ v []float64 }

func (s *sample) add(ms float64) { s.v = append(s.v, ms) }

// at is the nearest-rank quantile.
func (s *sample) at(q float64) float64 {
	if len(s.v) == 0 {
		return 0
	}
	slices.Sort(s.v)
	return s.v[min(len(s.v)-1, max(0, int(math.Ceil(q*float64(len(s.v))))-1))]
}

func (s *sample) latency() result.Latency {
	return result.NewLatency(int64(len(s.v)), s.at(0.5), s.at(0.95), s.at(0.99))
}

// rate is (n−1) ÷ (last − first) per second; nil with fewer than two times.
func rate(times []int64) *float64 {
	if len(times) < 2 {
		return nil
	}
	span := slices.Max(times) - slices.Min(times)
	if span <= 0 {
		return nil
	}
	v := float64(len(times)-1) / (float64(span) / 1e9)
	return &v
}

func smaller(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(min(*a, *b))
}

// group collects the figures of a set of messages.
type group struct {
	offered, ok, rejected, missing, duplicates, copies, excess int64
	resp, respFire, first, relay, added                        sample
	accepted, firsts                                           []int64
	ids                                                        map[uint64]bool
}

func (g *group) take(m *measured, excess int64) {
	g.offered++
	g.excess += excess
	s := m.sent
	switch {
	case s.Resp == 0:
		g.missing++
	case s.Result != 0:
		g.rejected++
	default:
		g.ok++
		g.accepted = append(g.accepted, s.Resp)
		if g.ids == nil {
			g.ids = map[uint64]bool{}
		}
		if g.ids[s.MsgID] {
			g.duplicates++
		}
		g.ids[s.MsgID] = true
	}
	if s.Resp != 0 {
		g.resp.add(millis(s.Resp - s.Due))
		g.respFire.add(millis(s.Resp - s.Fire))
	}
	if m.first != 0 {
		g.first.add(millis(m.first - s.Due))
		g.firsts = append(g.firsts, m.first)
	}
	if m.received != 0 && m.reported != 0 {
		g.relay.add(millis(m.received - m.reported))
	}
	if ms, ok := m.added(); ok {
		g.added.add(ms)
	}
	g.copies += m.copies
}

func (g *group) submitResp() result.SubmitResp {
	return result.SubmitResp{Latency: g.resp.latency(), OK: g.ok, Rejected: g.rejected, Missing: g.missing, DuplicateMsgID: g.duplicates}
}

// firstSubmit gives the full-chain rate: first SUBMITs per second from the group's
// first to its last. Behind a bottleneck a step's messages share that time with
// what an earlier step left, so all that the suppliers got then counts; all is
// sorted.
func (g *group) firstSubmit(hold time.Duration, all []int64) result.FirstSubmit {
	f := result.FirstSubmit{Latency: g.first.latency(), DuplicateSubmitID: g.excess}
	if len(g.firsts) > 0 {
		from, _ := slices.BinarySearch(all, slices.Min(g.firsts))
		to, _ := slices.BinarySearch(all, slices.Max(g.firsts)+1)
		f.TPSInterval = rate(all[from:to])
	}
	if len(g.firsts) > 0 {
		f.TPSPhase = new(float64(len(g.firsts)) / hold.Seconds())
	}
	f.TPS = smaller(f.TPSInterval, f.TPSPhase)
	return f
}

// firstTimes lists when the suppliers read first SUBMITs, sorted: all, and by
// enterprise.
func firstTimes(enterprises int, list []measured) (all []int64, by [][]int64) {
	by = make([][]int64, enterprises)
	for i := range list {
		if at := list[i].first; at != 0 {
			all = append(all, at)
			by[list[i].enterprise] = append(by[list[i].enterprise], at)
		}
	}
	slices.Sort(all)
	for i := range by {
		slices.Sort(by[i])
	}
	return all, by
}

// steps makes the steps of the report, one per phase; validity is filled in by the
// caller.
func steps(s *spec.Scenario, plan *load.Plan, starts []int64, list []measured, w *verify.Witness) []result.Step {
	excess := verify.Excess(w)
	finals := map[uint64]int64{}
	for i := range w.Database.Messages {
		if m := &w.Database.Messages[i]; m.FinalAt != nil {
			finals[m.MsgID] = m.FinalAt.UnixNano()
		}
	}
	firsts, byEnterprise := firstTimes(len(s.Enterprises), list)
	all := make([]group, len(plan.Phases))
	each := make([][]group, len(plan.Phases))
	ends := make([][]int64, len(plan.Phases))
	for i := range each {
		each[i] = make([]group, len(s.Enterprises))
	}
	for i := range list {
		m := &list[i]
		all[m.phase].take(m, excess[m.sent.Key])
		each[m.phase][m.enterprise].take(m, excess[m.sent.Key])
		if at, ok := finals[m.sent.MsgID]; ok {
			ends[m.phase] = append(ends[m.phase], at)
		}
	}
	out := make([]result.Step, len(plan.Phases))
	for i := range plan.Phases {
		p, g := &plan.Phases[i], &all[i]
		out[i] = result.Step{
			Name: p.Name, TargetTPS: p.TPS(s.Enterprises), Offered: g.offered, Valid: true,
			SubmitResp: g.submitResp(), FirstSubmit: g.firstSubmit(p.Hold, firsts), Added: g.added.latency(),
			Receipts: result.Receipts{Latency: g.relay.latency(), Duplicates: g.copies},
			Warmup:   !p.Measure, DurationS: p.Hold.Seconds(),
			OfferedTPS: new(float64(g.offered) / p.Hold.Seconds()), FinalTPS: rate(ends[i]), SubmitRespFire: new(g.respFire.latency()),
			AcceptedTPS: smaller(rate(g.accepted), new(float64(g.ok)/p.Hold.Seconds())),
		}
		poolFigures(s, &out[i], p, starts[i], w)
		if len(s.Enterprises) > 1 {
			for k := range s.Enterprises {
				e := &each[i][k]
				out[i].Enterprises = append(out[i].Enterprises, result.StepEnterprise{
					Enterprise: s.Enterprises[k].ID, Offered: e.offered, SubmitResp: e.submitResp(), FirstSubmit: e.firstSubmit(p.Hold, byEnterprise[k]),
				})
			}
		}
	}
	return out
}

// poolFigures compares a step with what the pools of the primary channels allow.
func poolFigures(s *spec.Scenario, step *result.Step, p *load.Phase, start int64, w *verify.Witness) {
	pool := s.Suppliers.Pool()
	if p.Pool != nil {
		pool = *p.Pool
	}
	step.Pool = pool.String()
	slots := float64(len(s.Carriers) * pool.Connections * pool.Window)
	middle := s.Behaviour.SubmitRTT.At(math.MaxUint64 / 2)
	if step.FirstSubmit.TPS != nil && middle > 0 {
		step.PoolRate = new(*step.FirstSubmit.TPS / (slots / middle.Seconds()))
	}
	end := start + int64(p.Hold)
	type event struct {
		at int64
		by int
	}
	var events []event
	n, refused := 0, 0
	names := map[string]string{}
	for _, c := range channels(s) {
		names[c.Login] = c.Name
	}
	times := map[string][]int64{}
	for i := range w.Suppliers.Submits {
		x := &w.Suppliers.Submits[i]
		if x.Recv < start || x.Recv >= end {
			continue
		}
		n++
		times[names[x.Account]] = append(times[names[x.Account]], x.Recv)
		if x.Result == flowControl {
			refused++
		}
		events = append(events, event{x.Recv, 1})
		if x.Sent != 0 {
			events = append(events, event{x.Sent, -1})
		}
	}
	if n == 0 {
		return
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	open, peak := 0, 0
	for _, e := range events {
		open += e.by
		peak = max(peak, open)
	}
	step.ChannelTPS = map[string]float64{}
	for name, list := range times {
		if tps := rate(list); tps != nil {
			step.ChannelTPS[name] = *tps
		}
	}
	step.PoolInflight, step.Result8 = new(float64(peak)/slots), new(float64(refused)/float64(n))
}

// flowControl is the result of a SUBMIT that came too fast.
const flowControl = 8

// series makes a row for every second of the load and the drain, counted from
// zero on the shared clock.
func series(zero int64, plan *load.Plan, starts []int64, list []measured, w *verify.Witness, h *hiccups, seconds []second) []result.Second {
	last := int64(0)
	bucket := func(at int64) int {
		last = max(last, at)
		return int((at - zero) / 1e9)
	}
	type cell struct {
		row  result.Second
		resp sample
	}
	cells := map[int]*cell{}
	get := func(at int64) *cell {
		k := bucket(at)
		if cells[k] == nil {
			cells[k] = &cell{row: result.Second{Second: int64(k)}}
		}
		return cells[k]
	}
	for i := range list {
		m := &list[i]
		get(m.sent.Due).row.Offered++
		if m.sent.Resp != 0 {
			c := get(m.sent.Resp)
			c.resp.add(millis(m.sent.Resp - m.sent.Due))
			if m.sent.Result == 0 {
				c.row.Accepted++
			}
		}
		if m.first != 0 {
			get(m.first).row.FirstSubmit++
		}
		if m.received != 0 {
			get(m.received).row.Final++
		}
	}
	var rows []result.Second
	stalls := stealBySecond(zero, seconds)
	for k := int((starts[0] - zero) / 1e9); k <= int((last-zero)/1e9); k++ {
		from, to := zero+int64(k)*1e9, zero+int64(k+1)*1e9
		row := result.Second{Second: int64(k)}
		if c := cells[k]; c != nil {
			row = c.row
			if n := len(c.resp.v); n >= result.MinP50 {
				row.P50 = new(c.resp.at(0.5))
				if n >= result.MinP95 {
					row.P95 = new(c.resp.at(0.95))
				}
				if n >= result.MinP99 {
					row.P99 = new(c.resp.at(0.99))
				}
			}
		}
		for i := range starts {
			if from+5e8 >= starts[i] && from+5e8 < starts[i]+int64(plan.Phases[i].Hold) {
				row.Step = plan.Phases[i].Name
			}
		}
		_, worst := h.between(from, to-1)
		row.HiccupMS = new(millis(int64(worst)))
		row.Steal = stalls[k]
		for i := range w.Suppliers.Submits {
			if s := &w.Suppliers.Submits[i]; s.Recv < to && (s.Sent == 0 || s.Sent >= to) {
				row.InFlight++
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func stealBySecond(zero int64, seconds []second) map[int]*float64 {
	by := map[int]*float64{}
	for i := 1; i < len(seconds); i++ {
		a, b := seconds[i-1], seconds[i]
		if total := b.machine.total - a.machine.total; total > 0 {
			by[int((a.at-zero)/1e9)] = new(float64(b.machine.steal-a.machine.steal) / float64(total))
		}
	}
	return by
}

// Limits of what a machine may do to a measurement (scenarios §3.4).
const (
	lateLimit    = 5.0 // ms, or 5 % of the tightest latency objective
	offeredLimit = 0.001
	stealLimit   = 0.02
	foreignLimit = 0.10
	ownLimit     = 0.8 // cores
)

// judgeClocks says whether the clocks of the phase from start to end can be believed.
func judgeClocks(s *spec.Scenario, start, end int64, planned int, list []*measured, w *verify.Witness, h *hiccups, seconds []second) *result.Validity {
	v := &result.Validity{OK: true}
	bad := func(note string) {
		v.OK = false
		v.Notes = append(v.Notes, note)
	}
	var late, sim sample
	fired := 0
	for _, m := range list {
		if m.sent.State == sp.NotSent {
			v.NotSent++
		}
		if m.sent.Fire != 0 {
			fired++
			late.add(millis(m.sent.Fire - m.sent.Due))
		}
	}
	for i := range w.Suppliers.Submits {
		if x := &w.Suppliers.Submits[i]; x.Recv >= start && x.Recv < end && x.Sent != 0 {
			sim.add(millis(x.Sent - x.Recv - x.Hold))
		}
	}
	limit := lateLimit
	for _, o := range s.SLO {
		if o.Max != nil && spec.Unit(o.Metric) == "ms" {
			limit = max(lateLimit, *o.Max/20)
			break
		}
	}
	if len(late.v) > 0 {
		v.GeneratorP99 = new(late.at(0.99))
		if *v.GeneratorP99 > limit {
			bad("the generator was late")
		}
	}
	if len(sim.v) > 0 {
		v.SimulatorP99 = new(sim.at(0.99))
		if *v.SimulatorP99 > lateLimit {
			bad("the simulated suppliers were late")
		}
	}
	if v.NotSent > 0 {
		bad("messages were not sent")
	}
	v.OfferedVsPlanned = new(float64(fired) / float64(max(planned, 1)))
	if math.Abs(1-*v.OfferedVsPlanned) > offeredLimit {
		bad("offered and planned differ")
	}
	v.Hiccups, _ = h.between(start, end)
	if steal, foreign, own, ok := shares(seconds, start, end); ok {
		v.Steal, v.ForeignCPU, v.OwnCPU = &steal, &foreign, &own
		if steal > stealLimit {
			bad("the host took CPU time away")
		}
		if foreign > foreignLimit {
			bad("other programs used the machine")
		}
		if own > ownLimit {
			bad("the harness used a core of its own")
		}
	}
	return v
}

// shares are the machine's time between two readings: stolen, used by others, and
// used by the harness in cores.
func shares(seconds []second, start, end int64) (steal, foreign, own float64, ok bool) {
	first, last := -1, -1
	for i := range seconds {
		if seconds[i].at >= start && first < 0 {
			first = i
		}
		if seconds[i].at <= end {
			last = i
		}
	}
	if first < 0 || last <= first {
		return 0, 0, 0, false
	}
	a, b := seconds[first], seconds[last]
	total := b.machine.total - a.machine.total
	if total <= 0 {
		return 0, 0, 0, false
	}
	ours := b.gateway - a.gateway + b.postgres - a.postgres + b.redis - a.redis + b.harness - a.harness
	busy := b.machine.busy - a.machine.busy
	steal = float64(b.machine.steal-a.machine.steal) / float64(total)
	foreign = max(0, float64(busy-ours)/float64(total))
	own = float64(b.harness-a.harness) / float64(b.at-a.at)
	return steal, foreign, own, true
}
