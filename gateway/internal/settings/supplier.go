package settings

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

// Limits of a channel (capacity-plan §3.2).
const (
	MaxConnections = 8
	MaxWindow      = 64
	maxSeconds     = 3600
	maxRate        = 1_000_000
)

// SignatureBy says who puts the signature 【…】 into the text.
type SignatureBy int16

// Who signs.
const (
	SignedByText     SignatureBy = iota // the text carries it
	SignedBySupplier                    // the supplier adds it: it is taken off the text
)

// ReportFormat is the layout of a supplier's status reports.
type ReportFormat int16

// Layouts (CMPP 2.0 and 3.0 §8.4.3 of the report).
const (
	ReportByLength ReportFormat = iota
	ReportNarrow                // the number has 21 octets, 60 in all
	ReportWide                  // the number has 32 octets, 71 in all
)

// SegmentReports says which parts of a long message a supplier reports.
type SegmentReports int16

// Parts that are reported.
const (
	ReportsAll SegmentReports = iota
	ReportsFirst
	ReportsLast
)

// Particulars is what is particular about a channel besides its numbers and fees.
type Particulars struct {
	FeeUserType    int16  // Fee_UserType: 0 recipient, 1 originator, 2 SP, 3 FeeTerminal
	FeeTerminal    string // Fee_terminal_Id
	SignatureBy    SignatureBy
	ReportFormat   ReportFormat
	ReversedMsgID  bool // Msg_Id in reports has its octets reversed
	SegmentReports SegmentReports
	UnitRule       sms.UnitRule // how the supplier counts units
}

// Stop is what an operator wants to become of what is not to be sent.
type Stop int16

// Kinds of stops.
const (
	NoStop  Stop = iota
	Hold         // commands wait
	Release      // messages end and their money is released
)

// Stops is what is stopped; see dispatch_stop.
type Stops struct {
	Platform     Stop
	Enterprises  map[int32]Stop
	Applications map[int32]Stop
	Channels     map[int32]Stop
}

// Of is the stop of an application's messages: the stricter of the application's, the enterprise's and the platform's. What
// is disabled is released. An application or enterprise that is not known is not stopped.
func (s *Snapshot) Of(enterprise, app int32) Stop {
	stop := max(s.Stops.Platform, s.Stops.Enterprises[enterprise], s.Stops.Applications[app])
	if e, ok := s.Enterprises[enterprise]; ok && e.Status == Disabled {
		stop = Release
	}
	if a, ok := s.Applications[app]; ok && a.Status == Disabled {
		stop = Release
	}
	return stop
}

// Held is the enterprises whose commands wait, sorted.
func (s *Snapshot) Held() (enterprises []int32) {
	for id, stop := range s.Stops.Enterprises {
		if stop == Hold {
			enterprises = append(enterprises, id)
		}
	}
	slices.Sort(enterprises)
	return enterprises
}

// Released is the enterprises and the applications whose queued messages are to end, sorted.
func (s *Snapshot) Released() (enterprises, applications []int32) {
	for id, e := range s.Enterprises {
		if e.Status == Disabled || s.Stops.Enterprises[id] == Release {
			enterprises = append(enterprises, id)
		}
	}
	for id, a := range s.Applications {
		if a.Status == Disabled || s.Stops.Applications[id] == Release {
			applications = append(applications, id)
		}
	}
	slices.Sort(enterprises)
	slices.Sort(applications)
	return enterprises, applications
}

// Scopes of dispatch_stop.
const (
	scopePlatform = iota + 1
	scopeEnterprise
	scopeApplication
	scopeChannel
)

func (s *Snapshot) loadSupplier(ctx context.Context, tx pgx.Tx) error {
	list, err := rows[struct {
		ID             int32
		FeeUserType    int16
		FeeTerminal    string
		SignatureBy    SignatureBy
		ReportFormat   ReportFormat
		ReportMsgID    int16
		SegmentReports SegmentReports
		UnitRule       sms.UnitRule
	}](ctx, tx, "particulars of channels", store.SettingsParticular)
	if err != nil {
		return err
	}
	for _, p := range list {
		if ch := s.Channels[p.ID]; ch != nil {
			ch.Particulars = Particulars{p.FeeUserType, p.FeeTerminal, p.SignatureBy, p.ReportFormat, p.ReportMsgID == 1, p.SegmentReports, p.UnitRule}
		}
	}
	s.Stops = Stops{Enterprises: map[int32]Stop{}, Applications: map[int32]Stop{}, Channels: map[int32]Stop{}}
	stops, err := rows[struct {
		Scope int16
		ID    int32
		Mode  Stop
	}](ctx, tx, "stops", store.SettingsStop)
	if err != nil {
		return err
	}
	for _, x := range stops {
		switch x.Scope {
		case scopePlatform:
			s.Stops.Platform = x.Mode
		case scopeEnterprise:
			s.Stops.Enterprises[x.ID] = x.Mode
		case scopeApplication:
			s.Stops.Applications[x.ID] = x.Mode
		case scopeChannel:
			s.Stops.Channels[x.ID] = x.Mode
		}
	}
	for _, g := range s.Groups {
		for i := range g.Candidates {
			if s.Stops.Channels[g.Candidates[i].ChannelID] != NoStop {
				g.Candidates[i].Enabled = false // an operator's lock wins over everything
			}
		}
	}
	s.Refused = s.refuse()
	return nil
}

// refuse says which enabled channels may not be opened, and every reason why (capacity-plan §3.2). The connections of an
// account are given to its channels by id: those beyond the contract are refused.
func (s *Snapshot) refuse() map[int32][]Fault {
	refused := make(map[int32][]Fault)
	connections := make(map[int32]int)
	for _, id := range slices.Sorted(maps.Keys(s.Channels)) {
		ch := s.Channels[id]
		if !ch.Enabled {
			continue
		}
		acct := s.Accounts[ch.AccountID]
		faults := ch.Faults(acct)
		if len(faults) == 0 {
			if n := connections[acct.ID] + ch.DesiredConnections; n > acct.MaxConnections {
				faults = append(faults, overSum(ch.DesiredConnections, acct, n))
			} else {
				connections[acct.ID] = n
			}
		}
		if len(faults) > 0 {
			refused[id] = faults
		}
	}
	return refused
}

// Fault is a setting of a channel that cannot be.
type Fault struct {
	Field   string `json:"field"` // as the table has it
	Value   int    `json:"value"`
	Allowed string `json:"allowed"`
}

func (f Fault) String() string { return fmt.Sprintf("%s %d: %s", f.Field, f.Value, f.Allowed) }

func overSum(desired int, acct *SupplierAccount, sum int) Fault {
	return Fault{"desired_connections", desired, fmt.Sprintf("account %d would have %d connections over all its channels, its contract allows %d",
		acct.ID, sum, acct.MaxConnections)}
}

// Admit says what is wrong with a channel as it shall become, beside the other enabled channels of its account: nothing may
// be opened beyond the contract.
func (s *Snapshot) Admit(ch *Channel) []Fault {
	acct := s.Accounts[ch.AccountID]
	faults := ch.Faults(acct)
	if acct == nil || !ch.Enabled {
		return faults
	}
	sum := ch.DesiredConnections
	for id, other := range s.Channels {
		if id != ch.ID && other.Enabled && other.AccountID == ch.AccountID {
			sum += other.DesiredConnections
		}
	}
	if sum > acct.MaxConnections && ch.DesiredConnections >= 1 && ch.DesiredConnections <= acct.MaxConnections {
		faults = append(faults, overSum(ch.DesiredConnections, acct, sum))
	}
	return faults
}

// Faults lists the settings of a channel that are out of their range or beyond the contract of its account; nil = none.
func (ch *Channel) Faults(acct *SupplierAccount) (faults []Fault) {
	if acct == nil {
		return []Fault{{"account_id", int(ch.AccountID), "no such supplier account"}}
	}
	for _, r := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"desired_connections", ch.DesiredConnections, 1, MaxConnections},
		{"window_size", ch.WindowSize, 1, MaxWindow},
		{"rate_limit", ch.RateLimit, 0, maxRate},
		{"warmup_seconds", ch.WarmupSeconds, 0, maxSeconds},
		{"drain_seconds", ch.DrainSeconds, 0, maxSeconds},
		{"response_seconds", ch.ResponseSeconds, 1, maxSeconds},
		{"cooldown_seconds", ch.CooldownSeconds, 0, maxSeconds},
		{"max_connections of the account", acct.MaxConnections, 1, MaxConnections},
		{"max_window of the account", acct.MaxWindow, 1, MaxWindow},
	} {
		if r.value < r.low || r.value > r.high {
			faults = append(faults, Fault{r.name, r.value, fmt.Sprintf("must be %d..%d", r.low, r.high)})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, r := range []struct {
		name        string
		value, most int
	}{
		{"desired_connections", ch.DesiredConnections, acct.MaxConnections},
		{"window_size", ch.WindowSize, acct.MaxWindow},
		{"rate_limit", ch.RateLimit, acct.MaxTPS},
	} {
		if r.value > r.most && (r.most > 0 || r.name != "rate_limit") {
			faults = append(faults, Fault{r.name, r.value, fmt.Sprintf("account %d's contract allows %d", acct.ID, r.most)})
		}
	}
	return faults
}
