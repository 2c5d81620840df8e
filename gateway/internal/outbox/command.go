package outbox

import (
	"strconv"
	"time"
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

// Topic is the nudge of a channel's hints.
func Topic(channel int32) string { return "{ob}:" + strconv.Itoa(int(channel)) }

func stream(channel int32) string { return "{ch:" + strconv.Itoa(int(channel)) + "}:submit" }
