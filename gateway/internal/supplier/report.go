package supplier

import (
	"math/bits"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/settings"
)

// Lengths of a status report (CMPP 2.0 §7.4.3.3, 3.0 §8.4.3.3).
const (
	narrowReport = 60
	wideReport   = 71
)

// readReport reads a status report as the channel's supplier writes them.
func readReport(ch *settings.Channel, content []byte) (cmpp.Report, error) {
	switch n := len(content); {
	case ch.Particulars.ReportFormat == settings.ReportNarrow && n > narrowReport:
		content = content[:narrowReport]
	case ch.Particulars.ReportFormat == settings.ReportWide && n >= narrowReport && n < wideReport:
		// The tail is missing: the number, at the front of it, is whole in most of them.
		content = append(append(make([]byte, 0, wideReport), content...), make([]byte, wideReport-n)...)
	}
	r, err := cmpp.ParseReport(content)
	if err == nil && ch.Particulars.ReversedMsgID {
		r.MsgID = cmpp.MsgID(bits.ReverseBytes64(uint64(r.MsgID)))
	}
	return r, err
}
