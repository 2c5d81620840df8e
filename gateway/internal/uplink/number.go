package uplink

import (
	"cmp"
	"slices"
	"strings"

	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/supplier"
)

const destMax = 21 // octets of Dest_Id

// numbers finds the applications of a number, by one snapshot of the settings.
type numbers struct {
	snap     *settings.Snapshot
	byNumber map[string][]*settings.Application // those that are not deleted, by access number; without those that have none
	bases    map[int32][]string                 // access numbers of an account's channels, longest first
	routed   map[base][]*settings.Application
}

// base is the access number of a channel of an account.
type base struct {
	account int32
	number  string
}

const deleted = settings.Disabled + 1 // applications that only the past speaks of (00007_admin.sql)

func newNumbers(s *settings.Snapshot) *numbers {
	n := &numbers{snap: s, byNumber: map[string][]*settings.Application{}, bases: map[int32][]string{}, routed: map[base][]*settings.Application{}}
	for _, ch := range s.Channels {
		if list := n.bases[ch.AccountID]; ch.AccessNumber != "" && !slices.Contains(list, ch.AccessNumber) {
			n.bases[ch.AccountID] = append(list, ch.AccessNumber)
		}
	}
	for _, list := range n.bases {
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	}
	for _, a := range s.Applications {
		if a.Status >= deleted {
			continue
		}
		if a.AccessNumber != "" {
			n.byNumber[a.AccessNumber] = append(n.byNumber[a.AccessNumber], a)
		}
		seen := map[base]bool{}
		for _, group := range a.Routes {
			g := s.Groups[group]
			if g == nil {
				continue
			}
			for _, c := range g.Candidates {
				ch := s.Channels[c.ChannelID]
				if ch == nil || ch.AccessNumber == "" {
					continue
				}
				if b := (base{ch.AccountID, ch.AccessNumber}); !seen[b] {
					seen[b] = true
					n.routed[b] = append(n.routed[b], a)
				}
			}
		}
	}
	return n
}

// candidates are the applications that a number of a supplier account may be of. first of them are preferred when none of
// them has written to the phone; base is the channel's part of the number.
func (n *numbers) candidates(account int32, dest string) (list []*settings.Application, first int, base string) {
	for _, b := range n.bases[account] {
		if strings.HasPrefix(dest, b) {
			base = b
			break
		}
	}
	for i := len(dest); i > len(base); i-- {
		if list := n.byNumber[dest[:i]]; len(list) > 0 {
			return list, len(list), base
		}
	}
	if base == "" {
		return nil, 0, ""
	}
	return n.under(account, base)
}

func (n *numbers) under(account int32, number string) (list []*settings.Application, first int, _ string) {
	list = slices.Clone(n.byNumber[number])
	first = len(list)
	for _, a := range n.routed[base{account, number}] {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list, first, number
}

// sender is a message to a phone.
type sender struct {
	phone         int64
	app, channel  int32
	src, service  []byte
	signature     string
	upstream      string // see numbers.upstream
	upstreamKnown bool
}

// owner is whose an uplink is.
type owner struct {
	app    *settings.Application
	number string  // it was sent to, as the customer writes it
	last   *sender // message that the application last sent to the phone from that number; nil = none
}

// ownerOf finds whose an uplink is; senders are the messages to its phone, newest first.
func (n *numbers) ownerOf(account int32, dest string, senders []sender) (owner, Reason) {
	list, first, base := n.candidates(account, dest)
	if len(list) == 0 {
		return owner{}, NoApplication
	}
	// The number, or the number without the digits that the phone added; else one that the supplier has cut.
	o, ok := n.lastOf(list, senders, func(upstream string) bool { return strings.HasPrefix(dest, upstream) })
	if !ok {
		o, ok = n.lastOf(list, senders, func(upstream string) bool { return strings.HasPrefix(upstream, dest) })
	}
	switch {
	case ok:
	case first == 1 || len(list) == 1:
		o.app = list[0]
	default:
		return owner{}, Ambiguous
	}
	o.number = o.write(base, dest)
	return o, 0
}

// lastOf is the application of the newest message whose Src_Id from says yes to.
func (n *numbers) lastOf(list []*settings.Application, senders []sender, from func(upstream string) bool) (owner, bool) {
	for i := range senders {
		s := &senders[i]
		if u := n.upstream(s); u == "" || !from(u) {
			continue
		}
		if k := slices.IndexFunc(list, func(a *settings.Application) bool { return a.ID == s.app }); k >= 0 {
			return owner{app: list[k], last: s}, true
		}
	}
	return owner{}, false
}

// upstream is the Src_Id that a message was sent with, as far as the settings of now tell; "" = they do not.
func (n *numbers) upstream(s *sender) string {
	if !s.upstreamKnown {
		s.upstreamKnown = true
		if ch := n.snap.Channels[s.channel]; ch != nil {
			s.upstream = supplier.SrcID(n.snap, ch, s.app, s.src)
		}
	}
	return s.upstream
}

// write is the number as the customer writes it.
func (o *owner) write(base, dest string) string {
	number := dest
	switch {
	case o.last != nil && strings.HasPrefix(dest, o.last.upstream):
		number = string(o.last.src) + dest[len(o.last.upstream):]
	case o.last != nil:
		number = string(o.last.src)
	case o.app.AccessNumber != "" && len(o.app.AccessNumber) >= len(base) && strings.HasPrefix(dest, o.app.AccessNumber):
	default:
		number = o.app.AccessNumber + strings.TrimPrefix(dest, base)
	}
	if number == "" {
		number = dest
	}
	return number[:min(len(number), destMax)]
}
