package inbound

import (
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

// Results of SUBMIT_RESP that the gateway gives (CMPP 2.0 §7.4.3.2, CMPP 3.0 §8.5.3.2).
const (
	resultOK        = 0
	resultStructure = 1
	resultTooLong   = 6
	resultFlow      = 8
	resultOther     = 9 // 2.0: "other"; for what no code of its version names
	resultSrcID     = 10
	resultMsgSrc    = 11
	resultDest      = 13
)

const maxRecipients = 99 // CMPP 3.0 §8.5.3.1: less than 100

// holdMost is how far ahead At_Time may be. A message is valid for no longer than this from then on: what waits in the
// queues beyond it would be looked for in facts that are detached already.
const holdMost = 7 * 24 * time.Hour

// refusal is a SUBMIT's fault: the result it is answered with and, for people, why.
type refusal struct {
	result uint32
	cause  string
}

func (r refusal) ok() bool { return r.result == resultOK }

// sinceV21 gives the codes that 2.1 and 3.0 know; on a 2.0 link they all are "other".
func sinceV21(v cmpp.Version, result uint32) uint32 {
	if v < cmpp.V21 {
		return resultOther
	}
	return result
}

// checked is what the check of a SUBMIT found out on the way.
type checked struct {
	validUntil time.Time // zero: the SUBMIT names none
	atTime     time.Time // zero: at once
	phone      uint64    // the first recipient, normalised
}

// check looks at the fields of a SUBMIT (CMPP 3.0 §8.5.3). The format is not looked at: that is policy's to refuse, with a
// receipt.
func check(p *cmpp.Submit, v cmpp.Version, app *settings.Application, now time.Time) (c checked, r refusal) {
	switch {
	case p.RegisteredDelivery > 2, p.RegisteredDelivery == 2 && v.Wide():
		return c, refusal{resultStructure, "Registered_Delivery is none of this version"}
	case len(p.DestTerminalID) == 0, len(p.DestTerminalID) > maxRecipients:
		return c, refusal{resultStructure, "DestUsr_tl is not in 1..99"}
	case len(p.MsgContent) > sms.MaxOctets(sms.Fmt(p.MsgFmt), sms.HasHeader(p.TPUDHI)):
		return c, refusal{resultTooLong, "Msg_Content is longer than one segment"}
	case p.MsgSrc != app.SPID:
		return c, refusal{sinceV21(v, resultMsgSrc), "Msg_src is not the SP id of the login"}
	case len(p.SrcID) < len(app.AccessNumber) || p.SrcID[:len(app.AccessNumber)] != app.AccessNumber:
		return c, refusal{sinceV21(v, resultSrcID), "Src_Id is not under the access number"}
	}
	if r := c.times(p, now); !r.ok() {
		return c, r
	}
	for i, d := range p.DestTerminalID {
		phone, err := sms.NormalizeNumber(d)
		if err != nil { // one bad number fails the whole submit
			return c, refusal{sinceV21(v, resultDest), "Dest_terminal_Id is no mobile number"}
		}
		if i == 0 {
			c.phone = phone
		}
	}
	return c, refusal{}
}

// times reads ValId_Time and At_Time.
func (c *checked) times(p *cmpp.Submit, now time.Time) refusal {
	begins := now
	if p.AtTime != "" {
		at, ok := parseTime(p.AtTime, now)
		switch {
		case !ok:
			return refusal{resultStructure, "At_Time is neither an absolute nor a relative time (YYMMDDhhmmsstnnp)"}
		case at.After(now.Add(holdMost)):
			return refusal{resultStructure, "At_Time is more than 7 days ahead"}
		case at.After(now):
			c.atTime, begins = at, at
		}
	}
	if p.ValidTime != "" {
		at, ok := parseTime(p.ValidTime, now)
		if !ok {
			return refusal{resultStructure, "ValId_Time is neither an absolute nor a relative time (YYMMDDhhmmsstnnp)"}
		}
		if most := begins.Add(holdMost); at.After(most) {
			at = most
		}
		c.validUntil = at
	}
	return refusal{}
}
