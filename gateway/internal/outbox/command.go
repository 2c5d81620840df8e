package outbox

import (
	"strconv"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/sms"
)

// Command is one pending row of submit_outbox with what its message needs upstream. It does not change after its COMMIT.
type Command struct {
	SubmitID     int64     `json:"id"`
	MessageID    int64     `json:"m"`
	RetryOf      int64     `json:"r,omitempty"` // submitId of the refused attempt
	ChannelID    int32     `json:"c"`
	EnterpriseID int32     `json:"e"`
	AppID        int32     `json:"a"` // whose access number Src begins with
	Attempt      int16     `json:"n"`
	Part         int16     `json:"p"`
	Parts        int16     `json:"ps"`
	Lane         int16     `json:"l"`
	Phone        int64     `json:"to"`
	Fmt          int16     `json:"f"`
	UDHI         int16     `json:"u,omitempty"`
	PkTotal      int16     `json:"pt"`
	PkNumber     int16     `json:"pn"`
	Src          []byte    `json:"s"`            // Src_Id as the customer wrote it (message.src)
	Service      []byte    `json:"sv,omitempty"` // Service_Id as the customer wrote it
	Content      []byte    `json:"b"`            // Msg_Content, header included
	ValidUntil   time.Time `json:"v,omitzero"`   // zero = no end
}

// Expired says whether the command may no longer be sent.
func (c *Command) Expired(now time.Time) bool {
	return !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil)
}

// Since is when the command, or the refused attempt it follows, was queued: its age is counted from there.
func (c *Command) Since() time.Time {
	if c.RetryOf != 0 {
		return message.TimeOf(c.RetryOf)
	}
	return message.TimeOf(c.SubmitID)
}

// Ages is how long commands may wait, by lane.
func Ages(c config.Outbox) [lanes]time.Duration {
	return [lanes]time.Duration{message.Verification: c.AgeVerification, message.Notification: c.AgeNotification, message.Marketing: c.AgeMarketing}
}

// Oldest is the oldest submitIds that may still wait at now, by lane: a command is too old when its Since is before.
func Oldest(c config.Outbox, now time.Time) (ids [lanes]int64) {
	for lane, age := range Ages(c) {
		ids[lane] = message.FirstID(now.Add(-age))
	}
	return ids
}

// SetPart makes the command one of the parts of a joined message: content is what sms.Long.Parts made of it.
func (c *Command) SetPart(part, parts, format int16, udhi bool, content []byte) {
	c.Part, c.Parts, c.PkNumber, c.PkTotal = part, parts, part, parts
	if c.Fmt, c.UDHI, c.Content = format, 0, content; udhi {
		c.UDHI = 1
	}
}

// Cut makes the command of a message with segments, whose Content, Fmt and UDHI are the whole message's, the one of its part.
// The same message gives the same parts each time; one that cannot be cut (it was, when its commands were made) is never
// sent and waits for its end.
func (c *Command) Cut(segments, outFmt int16, ref int32) {
	if segments == 0 {
		return
	}
	l := sms.Long{Fmt: sms.Fmt(c.Fmt), Header: c.UDHI != 0, Content: c.Content, OutFmt: sms.Fmt(outFmt), Ref: uint32(ref)}
	parts, udhi, err := l.Parts()
	if err != nil || len(parts) != int(c.Parts) || c.Part < 1 || c.Part > c.Parts {
		c.ValidUntil = time.Unix(0, 0)
		return
	}
	c.SetPart(c.Part, c.Parts, outFmt, udhi, parts[c.Part-1])
}

// Topic is the nudge of a channel's hints.
func Topic(channel int32) string { return "{ob}:" + strconv.Itoa(int(channel)) }

func stream(channel int32) string { return "{ch:" + strconv.Itoa(int(channel)) + "}:submit" }
