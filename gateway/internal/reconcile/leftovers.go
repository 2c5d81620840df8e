package reconcile

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settlement"
)

// leftovers matches what Msg_Id and recipient together did not: by Msg_Id alone, then by recipient and time. A line that
// may be an unknown submit is evidence, and settlement decides.
func (m *matching) leftovers() {
	byID, byPhone := map[int64][]*ours{}, map[int64][]*ours{}
	for i := range m.alone {
		o := &m.alone[i]
		if o.msgID != 0 {
			byID[o.msgID] = append(byID[o.msgID], o)
		}
		byPhone[o.phone] = append(byPhone[o.phone], o)
	}
	var rest []line
	for i := range m.strays {
		l := &m.strays[i]
		if l.msgID != 0 {
			if at := slices.IndexFunc(byID[l.msgID], func(o *ours) bool { return !o.taken }); at >= 0 {
				o := byID[l.msgID][at]
				o.taken = true
				m.pair(o, l, Number)
				continue
			}
		}
		rest = append(rest, *l)
	}
	m.strays = m.strays[:0]
	for i := range rest {
		l := &rest[i]
		switch o := nearest(byPhone[l.phone], l); {
		case o == nil:
			m.strays = append(m.strays, *l)
		case o.state == message.SubmitUnknown:
			o.taken = true
			m.evidence = append(m.evidence, *l)
		default:
			o.taken = true
			m.pair(o, l, MsgID)
		}
	}
	// A line that found its submit shows settlement which day the statement covers; its recipient must be no unknown one's.
	if l := m.matched; l != nil && l.at != nil && !slices.ContainsFunc(m.alone, func(o ours) bool { return o.state == message.SubmitUnknown && o.phone == l.phone }) {
		m.evidence = append(m.evidence, *l)
	}
}

// nearest is the free submit that a line without its Msg_Id fits best: an unknown one before an accepted before a refused,
// then by time.
func nearest(candidates []*ours, l *line) *ours {
	rank := func(o *ours) int {
		if o.state == message.SubmitUnknown {
			return 0
		}
		if o.state == message.Accepted {
			return 1
		}
		return 2
	}
	if l.at == nil {
		return nil
	}
	fitting := slices.DeleteFunc(slices.Clone(candidates), func(o *ours) bool { return o.taken || o.at.Sub(*l.at).Abs() > tolerance })
	if len(fitting) == 0 {
		return nil
	}
	return slices.MinFunc(fitting, func(a, b *ours) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.part, b.part), cmp.Compare(a.at.Sub(*l.at).Abs(), b.at.Sub(*l.at).Abs()))
	})
}

// finish counts what stayed alone and sums up.
func (m *matching) finish(absent settlement.Absent) {
	inDay := func(t time.Time) bool { return !t.Before(m.from) && t.Before(m.to) }
	for i := range m.alone {
		o := &m.alone[i]
		if o.taken || !inDay(o.at) {
			continue
		}
		m.countOurs(o)
		d := m.difference(o, nil)
		d.Ours, d.Theirs = o.state.String(), "not listed"
		switch {
		case o.state == message.Accepted:
			d.Kind = OnlyOurs
		case o.state == message.SubmitUnknown && absent == settlement.KeepUnknown:
			d.Kind = Absent
		default: // refused here, and not in their statement
			continue
		}
		m.report.add(d)
	}
	for i := range m.strays {
		l := &m.strays[i]
		m.countTheirs(l, m.channelOf(l), m.snap.Table.Carrier(uint64(l.phone)))
		if l.accepted {
			d := m.difference(nil, l)
			d.Kind, d.Ours, d.Theirs = OnlyTheirs, "no submit", "accepted"
			m.report.add(d)
		}
	}
	r := m.report
	for _, c := range m.cells {
		r.Cells = append(r.Cells, *c)
	}
	slices.SortFunc(r.Cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Carrier, b.Carrier))
	})
	slices.SortStableFunc(r.List, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Line, b.Line), cmp.Compare(a.SubmitID, b.SubmitID))
	})
	if n := max(r.Sums().OursN, r.Sums().TheirsN); n > 0 {
		r.Ratio = float64(r.Differing) / float64(n)
	} else if r.Differing > 0 {
		r.Ratio = 1
	}
}

// writeEvidence writes lines in the form settlement reads.
func writeEvidence(w io.Writer, login string, lines []line) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"account", "msg_id", "number", "src_id", "submit_time", "result"}); err != nil {
		return err
	}
	for _, l := range lines {
		result := l.result
		if l.accepted {
			result = 0
		} else if result == 0 {
			result = 9 // refused for a reason without a number: "other" (CMPP 2.0 §7.4.3.2)
		}
		if err := out.Write([]string{
			login, strconv.FormatUint(uint64(l.msgID), 10), strconv.FormatInt(l.phone, 10), strings.TrimSpace(l.src),
			l.at.Format(time.RFC3339Nano), strconv.FormatUint(uint64(uint32(result)), 10),
		}); err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}
