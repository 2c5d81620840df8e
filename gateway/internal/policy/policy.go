package policy

import (
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/sms"
)

// Facts is one message and what is known about its sender in the transaction that decides it.
type Facts struct {
	EnterpriseActive  bool
	ApplicationActive bool
	Fmt               sms.Fmt
	UDHI              uint8  // TP_udhi as received
	Content           []byte // Msg_Content as received
	Number            string // recipient as the customer wrote it
	UnitRule          sms.UnitRule
}

// Verdict is the outcome for one message. Reason is NoReason when it may be sent.
type Verdict struct {
	Reason message.Reason
	Text   string // decoded; empty for binary formats
	Phone  uint64 // recipient normalised; 0 when it is not a number
	Units  int    // billing units of the customer, at least 1
}

// rule looks at the facts and at what was read from them, and objects or does not.
type rule func(Facts, *Verdict, error) message.Reason

var rules = []rule{status, format}

// Evaluate applies the rules in order.
func Evaluate(f Facts) Verdict {
	v, err := read(f)
	for _, r := range rules {
		if v.Reason = r(f, &v, err); v.Reason != message.NoReason {
			break
		}
	}
	return v
}

// read decodes what the rules and the bill look at. Its error is the format rule's to judge, so that a disabled
// customer is told about the status whatever the text.
func read(f Facts) (Verdict, error) {
	v := Verdict{Units: 1}
	payload, segment := f.Content, false
	if sms.HasHeader(f.UDHI) {
		_, concat, _, rest, err := sms.SplitHeader(f.Content)
		if err != nil {
			return v, err
		}
		payload, segment = rest, concat
	}
	phone, err := sms.NormalizeNumber(f.Number)
	if err != nil {
		return v, err
	}
	v.Phone = phone
	switch f.Fmt {
	case sms.FmtSIM, sms.FmtBinary:
		v.Units = sms.UnitsBinary(len(payload))
	case sms.FmtASCII, sms.FmtUCS2, sms.FmtGB18030:
		if v.Text, err = sms.DecodeText(f.Fmt, payload); err != nil {
			// A segment may end inside a character that the next one completes; alone it is one unit either way.
			if !segment {
				return v, err
			}
			v.Text = ""
		}
		v.Units = sms.Units(v.Text, f.UnitRule)
	default:
		_, err = sms.DecodeText(f.Fmt, payload)
		return v, err
	}
	if segment {
		v.Units = 1
	}
	return v, nil
}

func status(f Facts, _ *Verdict, _ error) message.Reason {
	if !f.EnterpriseActive || !f.ApplicationActive {
		return message.ReasonStatus
	}
	return message.NoReason
}

func format(_ Facts, _ *Verdict, err error) message.Reason {
	if err != nil {
		return message.ReasonFormat
	}
	return message.NoReason
}
