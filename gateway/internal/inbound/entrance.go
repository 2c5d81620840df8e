package inbound

import (
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/settings"
)

// valve is a backlog that refuses SUBMITs at its ceiling; its label in the metric of limited SUBMITs, beside those of rates.
type valve string

const (
	valveApplication valve = "backlog_application"
	valvePlatform    valve = "backlog_platform"
	valveChannel     valve = "backlog_channel"
	valveWindow      valve = "window"
	valveQueue       valve = "queue"
	valveWaiting     valve = "waiting" // long messages that are not complete, and SUBMITs for later
)

// entrance says whether a SUBMIT, which is all right and within the window, may go into the inbox now: the backlog ceilings
// first, then the rates, which it takes from only if all of them allow it. What is refused is refused as a whole.
func (c *conn) entrance(app *settings.Application, p *cmpp.Submit, found *checked, now time.Time) refusal {
	s := c.server
	snap := s.Settings.Current()
	if v, cause := s.backlog.full(snap, app, p.DestTerminalID); v != "" {
		s.metrics.limited.WithLabelValues(string(v)).Inc()
		return refusal{resultFlow, cause}
	}
	if cause := s.sets.admit(c.app, p, found, now); cause != "" {
		s.metrics.limited.WithLabelValues(string(valveWaiting)).Inc()
		return refusal{resultFlow, cause}
	}
	if by, ok := s.rates.take(&c.rate, c.app, c.enterprise, &snap.Limits, len(p.DestTerminalID), s.now()); !ok {
		s.metrics.limited.WithLabelValues(by.String()).Inc()
		return refusal{resultFlow, tooFast[by]}
	}
	return refusal{}
}
