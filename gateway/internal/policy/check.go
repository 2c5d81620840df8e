package policy

import (
	"time"

	"cmppgateway/gateway/internal/message"
)

// Shanghai is the zone of quiet hours and of the day of a quota. China has had no summer time since 1991.
var Shanghai = time.FixedZone("Asia/Shanghai", 8*60*60)

// Message is one SUBMIT and what is known about its sender in the transaction that decides it.
type Message struct {
	Enterprise, App   int32
	EnterpriseActive  bool
	ApplicationActive bool
	Lane              message.Lane
	ValidUntil        *time.Time // nil = not given
	Content           Content
}

// Verdict is what Check found. Reason is NoReason when nothing objects.
type Verdict struct {
	Reason    message.Reason
	Signature string // without 【】; "" = none found
	Template  int32  // the one the text follows, 0 = none
	Keyword   int32  // the most severe one in the text, 0 = none
	Action    Action // of the keyword
}

// Held says that the message waits for a review.
func (v *Verdict) Held() bool { return v.Reason == message.NoReason && v.Action == Hold }

// checking is a message under Check.
type checking struct {
	*Verdict

	set   *Set
	m     *Message
	modes Modes
	now   time.Time
	body  string // the text without its signature
}

// rule objects or does not. Rules run in order; a further one is one more function in the list.
type rule func(*checking) message.Reason

var rules = []rule{status, format, expired, signature, templated, keywords, quiet}

// Check judges a message by itself, at now.
func (s *Set) Check(m Message, now time.Time) Verdict {
	var v Verdict
	c := checking{Verdict: &v, set: s, m: &m, modes: s.Modes(m.App), now: now, body: m.Content.Text}
	for _, r := range rules {
		if v.Reason = r(&c); v.Reason != message.NoReason {
			break
		}
	}
	return v
}

// BadNumber is the verdict for a recipient that is no number: FORMAT, unless the sender's status comes first.
func (v Verdict) BadNumber() message.Reason {
	if v.Reason == message.ReasonStatus {
		return v.Reason
	}
	return message.ReasonFormat
}

func status(c *checking) message.Reason {
	if !c.m.EnterpriseActive || !c.m.ApplicationActive {
		return message.ReasonStatus
	}
	return message.NoReason
}

func format(c *checking) message.Reason {
	if c.m.Content.Err != nil {
		return message.ReasonFormat
	}
	return message.NoReason
}

func expired(c *checking) message.Reason {
	if c.m.ValidUntil != nil && !c.now.Before(*c.m.ValidUntil) {
		return message.ReasonExpired
	}
	return message.NoReason
}

// signature notes the signature even where none is required: opt-outs and channels ask for it.
func signature(c *checking) message.Reason {
	place := c.modes.Place
	if c.modes.Signature == SignatureOff || place == 0 {
		place = Either
	}
	found, body, err := FindSignature(c.m.Content.Text, place)
	c.Signature, c.body = found, body
	if c.modes.Signature == SignatureOff {
		return message.NoReason
	}
	if err != nil || c.set.signatures[c.m.Enterprise][found] == nil {
		return message.ReasonSignature
	}
	return message.NoReason
}

func templated(c *checking) message.Reason {
	if c.modes.Template == TemplateOff {
		return message.NoReason
	}
	c.Template = c.set.template(c.m.Enterprise, c.m.App, c.body)
	if c.Template == 0 && c.modes.Template == TemplateForce {
		return message.ReasonTemplate
	}
	return message.NoReason
}

// keywords looks at the whole text, the signature too. A text that follows an approved template was reviewed with it.
func keywords(c *checking) message.Reason {
	w := c.set.keyword(c.m.Enterprise, c.m.Content.Text)
	if w.action == 0 || w.action == Hold && c.Template != 0 {
		return message.NoReason
	}
	c.Keyword, c.Action = w.id, w.action
	if w.action == Reject {
		return message.ReasonKeyword
	}
	return message.NoReason
}

func quiet(c *checking) message.Reason {
	if c.m.Lane != message.Marketing || c.modes.QuietFrom == c.modes.QuietUntil {
		return message.NoReason
	}
	t := c.now.In(Shanghai)
	minute := t.Hour()*60 + t.Minute()
	inside := minute >= c.modes.QuietFrom && minute < c.modes.QuietUntil
	if c.modes.QuietFrom > c.modes.QuietUntil { // over midnight
		inside = minute >= c.modes.QuietFrom || minute < c.modes.QuietUntil
	}
	if inside {
		return message.ReasonRisk
	}
	return message.NoReason
}
