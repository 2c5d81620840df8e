package supplier

import (
	"fmt"
	"strconv"
	"time"
)

// LinkState of a connection.
type LinkState uint8

// Connection states; see the package's description.
const (
	Closed LinkState = iota
	Connecting
	Warming
	Active
	Cooling
	Draining
)

var linkStates = [...]string{"closed", "connecting", "warming", "active", "cooling", "draining"}

func (s LinkState) String() string {
	if int(s) >= len(linkStates) {
		return fmt.Sprintf("link(%d)", uint8(s))
	}
	return linkStates[s]
}

// MarshalText gives the word.
func (s LinkState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ChannelState of a pool.
type ChannelState uint8

// Channel states; see the package's description.
const (
	Waiting ChannelState = iota
	Refused
	Open
	Closing
	Stopped
)

var channelStates = [...]string{"waiting", "refused", "open", "closing", "stopped"}

func (s ChannelState) String() string {
	if int(s) >= len(channelStates) {
		return fmt.Sprintf("channel(%d)", uint8(s))
	}
	return channelStates[s]
}

// MarshalText gives the word.
func (s ChannelState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Status is what one channel does at this moment, for the admin API and the gauges.
type Status struct {
	Channel     int32        `json:"channel"`
	Name        string       `json:"name"`
	State       ChannelState `json:"state"`
	Detail      string       `json:"detail,omitempty"`  // why it is refused or out of the candidates, or who holds it
	Breaker     string       `json:"breaker,omitempty"` // closed, open or half-open
	Fence       int64        `json:"fence,omitempty"`
	InFlight    int          `json:"inFlight"`
	Backlog     int          `json:"backlog"`
	Connections []LinkStatus `json:"connections"`
}

// LinkStatus is one connection.
type LinkStatus struct {
	ID         string        `json:"id"` // node, channel and number
	Number     int           `json:"number"`
	State      LinkState     `json:"state"`
	Session    uint64        `json:"session,omitempty"`
	Window     int           `json:"window"`
	InFlight   int           `json:"inFlight"`
	P95        time.Duration `json:"p95"`
	Answers    uint64        `json:"answers"`
	Unanswered uint64        `json:"unanswered"`       // timed out
	Slowed     int           `json:"slowed,omitempty"` // division of its pace after result 8
	Failures   int           `json:"failures,omitempty"`
	LastError  string        `json:"lastError,omitempty"`
}

func label(channel int32) string { return strconv.Itoa(int(channel)) }
