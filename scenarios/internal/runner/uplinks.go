package runner

import (
	"context"
	"fmt"
	"strings"

	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
)

// sendUplinks has the suppliers send the scenario's messages from handsets, spread over
// their time from zero, each from a number of its own, through the channels in turn.
func (r *run) sendUplinks(ctx context.Context, zero int64) error {
	u := &r.s.Uplinks
	every := int64(u.Over) / int64(max(u.Count, 1))
	all := channels(r.s)
	for i := range u.Count {
		if err := r.wait(ctx, zero+int64(i)*every); err != nil {
			return err
		}
		c := all[i%len(all)]
		x := verify.Uplink{Number: fmt.Sprintf("139%08d", i), Dest: c.Access + u.Extension, Account: c.Login}
		var err error
		if u.LongEvery > 0 && i%u.LongEvery == 0 {
			x.Text = strings.ReplaceAll(u.LongText, "{n}", fmt.Sprintf("%06d", i))
			wide := i%2 == 0
			order := make([]int, ismg.UplinkSegments(x.Text, wide))
			for k := range order {
				order[k] = len(order) - 1 - k
			}
			x.DeliverIDs, err = r.suppliers.SendLongUplink(c.Login, x.Number, x.Dest, x.Text, uint16(i), wide, order)
		} else {
			x.Text = strings.ReplaceAll(u.Text, "{n}", fmt.Sprintf("%06d", i))
			x.DeliverIDs = make([]uint64, 1)
			x.DeliverIDs[0], err = r.suppliers.SendUplink(c.Login, x.Number, x.Dest, x.Text)
		}
		if err != nil {
			return unfit("uplinks: %w", err)
		}
		r.mu.Lock()
		r.terms.Uplinks = append(r.terms.Uplinks, x)
		r.mu.Unlock()
	}
	return nil
}

// replayUplinks repeats what was acknowledged, when the load is over: nothing of it may
// have an effect.
func (r *run) replayUplinks() error {
	if r.s.Uplinks.Replay == 0 {
		return nil
	}
	for _, c := range channels(r.s) {
		if _, err := r.suppliers.Replay(c.Login, r.s.Uplinks.Replay); err != nil {
			return unfit("replay: %w", err)
		}
	}
	return nil
}
