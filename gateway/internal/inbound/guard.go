package inbound

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// guard makes those wait who fail to log in. Failures are counted for each pair of address and account, and, against
// guessing that changes one of them, for each address and for each account with four times as many free. What is over the
// free ones makes the next login wait, twice as long every time; logins during the wait are refused, do not prolong it, and
// tell nothing about the secret. A pair that has logged in before is let in with the right secret at any time: one host of
// a customer with an old secret, or a stranger behind the same address, does not lock the others out.
//
// Memory is bounded: beyond guardMost keys the one touched longest ago is forgotten.
type guard struct {
	free        int           // failures of a pair without a wait
	first, most time.Duration // shortest and longest wait

	mu       sync.Mutex
	failures *recency[guardKey, *failures]
	good     *recency[guardKey, struct{}]
}

const (
	guardMost   = 8192             // keys of failures, and again of pairs that have logged in
	guardForget = 15 * time.Minute // without a failure: as if there had been none
	guardWide   = 4                // how many times more failures an address or an account has free than a pair
)

// guardKey names a pair, or with one of its fields zero everybody at an address or on an account.
type guardKey struct {
	addr    netip.Addr
	account string
}

type failures struct {
	n           int
	last, until time.Time
}

func newGuard(free int, first, most time.Duration) *guard {
	return &guard{
		free: free, first: first, most: most,
		failures: newRecency[guardKey, *failures](guardMost), good: newRecency[guardKey, struct{}](guardMost),
	}
}

// place is what of an address identifies its owner: of IPv6 the network of 64 bits.
func place(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// wait is how long a login must still wait, and whether the pair has logged in before.
func (g *guard) wait(addr netip.Addr, account string, now time.Time) (d time.Duration, known bool) {
	addr = place(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known = g.good.get(guardKey{addr, account})
	for _, k := range [...]guardKey{{addr, account}, {addr: addr}, {account: account}} {
		if f, ok := g.failures.get(k); ok {
			d = max(d, f.until.Sub(now))
		}
	}
	return max(d, 0), known
}

// failed counts a refused login.
func (g *guard) failed(addr netip.Addr, account string, now time.Time) {
	addr = place(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(guardKey{addr, account}, g.free, now)
	g.count(guardKey{addr: addr}, guardWide*g.free, now)
	g.count(guardKey{account: account}, guardWide*g.free, now)
}

func (g *guard) count(k guardKey, free int, now time.Time) {
	f, ok := g.failures.get(k)
	if !ok || now.Sub(f.last) > guardForget {
		f = &failures{}
		g.failures.put(k, f)
	}
	f.n++
	f.last = now
	if over := f.n - free; over > 0 {
		wait := g.most
		if over <= 30 { // beyond, the shift would overflow
			wait = min(wait, g.first<<(over-1))
		}
		f.until = now.Add(wait)
	}
}

// succeeded forgets the failures of a pair that has shown the right secret.
func (g *guard) succeeded(addr netip.Addr, account string) {
	k := guardKey{place(addr), account}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures.drop(k)
	g.good.put(k, struct{}{})
}

func (g *guard) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.failures.at)
}

// recency is a map of at most so many keys; a new one pushes out the one not used for longest.
type recency[K comparable, V any] struct {
	most  int
	order list.List // of entry, the longest unused first
	at    map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newRecency[K comparable, V any](most int) *recency[K, V] {
	return &recency[K, V]{most: most, at: make(map[K]*list.Element)}
}

func (r *recency[K, V]) get(k K) (v V, ok bool) {
	e, ok := r.at[k]
	if !ok {
		return v, false
	}
	r.order.MoveToBack(e)
	return e.Value.(*entry[K, V]).value, true
}

func (r *recency[K, V]) put(k K, v V) {
	if e, ok := r.at[k]; ok {
		e.Value.(*entry[K, V]).value = v
		r.order.MoveToBack(e)
		return
	}
	if len(r.at) >= r.most {
		oldest := r.order.Front()
		delete(r.at, r.order.Remove(oldest).(*entry[K, V]).key)
	}
	r.at[k] = r.order.PushBack(&entry[K, V]{k, v})
}

func (r *recency[K, V]) drop(k K) {
	if e, ok := r.at[k]; ok {
		r.order.Remove(e)
		delete(r.at, k)
	}
}
