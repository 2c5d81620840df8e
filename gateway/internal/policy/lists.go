package policy

import (
	"fmt"

	"cmppgateway/gateway/internal/message"
)

// Status of a signature, a template or a signature at an access number.
type Status int16

// Statuses.
const (
	Pending Status = iota + 1
	Approved
	Refused
)

// SignatureMode of an application.
type SignatureMode int16

// Signature modes.
const (
	SignatureOff SignatureMode = iota
	SignatureRequired
)

// Place is where an application's texts carry their signature.
type Place int16

// Places.
const (
	Front Place = iota + 1
	End
	Either
)

// TemplateMode of an application.
type TemplateMode int16

// Template modes: match notes which template a text follows and spares it the review of keywords; force refuses all others.
const (
	TemplateOff TemplateMode = iota
	TemplateMatch
	TemplateForce
)

// Action of a keyword.
type Action int16

// Actions.
const (
	Reject Action = iota + 1
	Hold          // for review, the money frozen
	Alert
)

// String is the word shown to people.
func (a Action) String() string {
	switch a {
	case Reject:
		return "reject"
	case Hold:
		return "hold"
	case Alert:
		return "alert"
	}
	return "none"
}

// Limits of an enterprise. 0 is no limit.
type Limits struct {
	Enterprise int32
	Minute     int // messages to one number that may pass in a rolling minute
	Hour       int
	Day        int   // in 24 hours
	Quota      int64 // messages a day of Asia/Shanghai
}

// DefaultLimits are those of an enterprise without a row.
var DefaultLimits = Limits{Day: 10}

// Modes of an application; the zero value checks nothing.
type Modes struct {
	App              int32
	Signature        SignatureMode
	Place            Place
	Template         TemplateMode
	Quota            int64 // messages a day of Asia/Shanghai, 0 = no limit
	DuplicateSeconds int   // the same content to the same number within is refused, 0 = off
	QuietFrom        int   // minute of the day in Asia/Shanghai
	QuietUntil       int   // equal to QuietFrom = never quiet
}

// Signature of an enterprise, without 【】.
type Signature struct {
	ID         int32
	Enterprise int32
	Text       string
	Status     Status
}

// SignatureNumber says whether suppliers take a signature at an access number.
type SignatureNumber struct {
	Signature int32
	Number    string
	Status    Status
}

// Template of an enterprise or one of its applications.
type Template struct {
	ID         int32
	Enterprise int32
	App        int32 // 0 = all of the enterprise
	Text       string
	Status     Status
}

// Keyword of an enterprise, or of all when Enterprise is 0.
type Keyword struct {
	ID         int32
	Enterprise int32
	Word       string
	Action     Action
}

// Stat overrides what an application's failed receipts say for a reason.
type Stat struct {
	App    int32
	Reason message.Reason
	Stat   string
}

// Demand says that a channel takes only signatures that were approved for its access number.
type Demand struct {
	Channel int32
	Number  string
}

// Lists are the rows that a Set is made of.
type Lists struct {
	Limits     []Limits
	Modes      []Modes
	Signatures []Signature
	Numbers    []SignatureNumber
	Templates  []Template
	Keywords   []Keyword
	Stats      []Stat
	Demands    []Demand
}

type statKey struct {
	app    int32
	reason message.Reason
}

type approved struct {
	id      int32
	numbers map[string]bool // access numbers it was approved for
}

// Set is the lists at one version, compiled. It is immutable and safe for concurrent use; a nil Set has no lists.
type Set struct {
	limits     map[int32]Limits
	modes      map[int32]Modes
	signatures map[int32]map[string]*approved // by enterprise; approved ones only
	templates  map[int32]*templates           // by enterprise
	keywords   map[int32]*matcher             // by enterprise, 0 = all
	stats      map[statKey]string
	demands    []Demand
}

// New compiles the lists. A row that cannot be used (a template that does not parse, a keyword that would match anything)
// matches nothing and is named in the errors; the Set is usable all the same, so that one bad row does not keep the
// others from taking effect.
func New(l Lists) (*Set, []error) {
	var faults []error
	s := &Set{
		limits: make(map[int32]Limits), modes: make(map[int32]Modes), signatures: make(map[int32]map[string]*approved),
		templates: make(map[int32]*templates), keywords: make(map[int32]*matcher), stats: make(map[statKey]string), demands: l.Demands,
	}
	for _, x := range l.Limits {
		s.limits[x.Enterprise] = x
	}
	for _, x := range l.Modes {
		s.modes[x.App] = x
	}
	byID := make(map[int32]*approved)
	for _, x := range l.Signatures {
		if x.Status != Approved {
			continue
		}
		if s.signatures[x.Enterprise] == nil {
			s.signatures[x.Enterprise] = make(map[string]*approved)
		}
		a := &approved{id: x.ID, numbers: make(map[string]bool)}
		byID[x.ID], s.signatures[x.Enterprise][x.Text] = a, a
	}
	for _, x := range l.Numbers {
		if a := byID[x.Signature]; a != nil && x.Status == Approved {
			a.numbers[x.Number] = true
		}
	}
	for _, x := range l.Templates {
		if x.Status != Approved {
			continue
		}
		p, err := parseTemplate(x.Text)
		if err != nil {
			faults = append(faults, fmt.Errorf("template %d: %w", x.ID, err))
			continue
		}
		if s.templates[x.Enterprise] == nil {
			s.templates[x.Enterprise] = newTemplates()
		}
		s.templates[x.Enterprise].add(x.ID, x.App, p)
	}
	words := make(map[int32][]word)
	for _, x := range l.Keywords {
		text, err := normalWord(x.Word)
		if err != nil {
			faults = append(faults, fmt.Errorf("keyword %d: %w", x.ID, err))
			continue
		}
		words[x.Enterprise] = append(words[x.Enterprise], word{id: x.ID, text: text, action: x.Action})
	}
	for enterprise, list := range words {
		s.keywords[enterprise] = newMatcher(list)
	}
	for _, x := range l.Stats {
		s.stats[statKey{x.App, x.Reason}] = x.Stat
	}
	return s, faults
}

// Limits of an enterprise.
func (s *Set) Limits(enterprise int32) Limits {
	if s != nil {
		if l, ok := s.limits[enterprise]; ok {
			return l
		}
	}
	l := DefaultLimits
	l.Enterprise = enterprise
	return l
}

// Modes of an application.
func (s *Set) Modes(app int32) Modes {
	if s == nil {
		return Modes{}
	}
	return s.modes[app]
}

// Stat is what the failed receipts of an application say for a reason: at most 7 octets.
func (s *Set) Stat(app int32, r message.Reason) string {
	if s != nil {
		if stat, ok := s.stats[statKey{app, r}]; ok {
			return stat
		}
	}
	return r.Stat()
}

// Closed lists the channels that do not take the signature of an enterprise: their suppliers approve signatures by access
// number, and this one was not approved for theirs.
func (s *Set) Closed(enterprise int32, signature string) []int32 {
	if s == nil || len(s.demands) == 0 {
		return nil
	}
	a := s.signatures[enterprise][signature]
	var closed []int32
	for _, d := range s.demands {
		if a == nil || !a.numbers[d.Number] {
			closed = append(closed, d.Channel)
		}
	}
	return closed
}
