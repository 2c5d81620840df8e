package seed

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/sms"
)

// File is a seed file.
type File struct {
	Enterprises   []item[Enterprise]  `yaml:"enterprises"`
	Applications  []item[Application] `yaml:"applications"`
	Suppliers     []item[Supplier]    `yaml:"suppliers"`
	Channels      []item[Channel]     `yaml:"channels"`
	Groups        []item[Group]       `yaml:"groups"`
	PrefixRules   []item[PrefixRule]  `yaml:"prefix_rules"`
	ResultClasses []item[ResultClass] `yaml:"result_classes"`
}

// Enterprise owns one account; Opening (1/10,000 yuan) is topped up once.
type Enterprise struct {
	ID      int32  `yaml:"id"`
	Name    string `yaml:"name"`
	Status  string `yaml:"status"` // active (default), disabled
	Opening int64  `yaml:"opening"`
	Credit  int64  `yaml:"credit"`
}

// Application is one customer login.
type Application struct {
	ID             int32             `yaml:"id"`
	Enterprise     int32             `yaml:"enterprise"`
	Name           string            `yaml:"name"`
	SPID           string            `yaml:"sp_id"`
	Secret         string            `yaml:"secret"`
	Status         string            `yaml:"status"`          // active (default), disabled
	Version        string            `yaml:"version"`         // any (default), 2.0, 3.0
	Price          *int64            `yaml:"price"`           // 1/10,000 yuan per unit
	UnitRule       string            `yaml:"unit_rule"`       // cn-70-67 (default), gsm-160-153
	ChargeOn       string            `yaml:"charge_on"`       // accept (default), deliver
	RefundOn       string            `yaml:"refund_on"`       // final_failed_receipt (default), never
	Lane           string            `yaml:"lane"`            // verification, notification (default), marketing
	MaxConnections int16             `yaml:"max_connections"` // 1..64, default 4
	Window         int16             `yaml:"window"`          // 1..256, default 32
	AccessNumber   string            `yaml:"access_number"`
	Routes         map[string]string `yaml:"routes"` // carrier → group name
}

// Supplier is one supplier account with the bounds of its contract.
type Supplier struct {
	ID             int32  `yaml:"id"`
	Name           string `yaml:"name"`
	Addr           string `yaml:"addr"`
	SPID           string `yaml:"sp_id"`
	Secret         string `yaml:"secret"`
	Version        string `yaml:"version"` // 2.0, 2.1, 3.0 (default)
	MaxConnections int16  `yaml:"max_connections"`
	MaxWindow      int16  `yaml:"max_window"`
	MaxTPS         int32  `yaml:"max_tps"`
}

// Channel is an access number of a supplier account with its pool settings.
type Channel struct {
	ID              int32  `yaml:"id"`
	Name            string `yaml:"name"`
	Supplier        string `yaml:"supplier"` // by name
	Carrier         string `yaml:"carrier"`
	Enabled         *bool  `yaml:"enabled"`
	Connections     int16  `yaml:"connections"` // 1..8
	Window          int16  `yaml:"window"`      // 1..64
	RateLimit       int32  `yaml:"rate_limit"`
	WarmupSeconds   *int32 `yaml:"warmup_seconds"`
	DrainSeconds    *int32 `yaml:"drain_seconds"`
	ResponseSeconds *int32 `yaml:"response_seconds"`
	CooldownSeconds *int32 `yaml:"cooldown_seconds"`
	AccessNumber    string `yaml:"access_number"`
	AppendExtension *bool  `yaml:"append_extension"`
	ServiceID       string `yaml:"service_id"`
	MsgSrc          string `yaml:"msg_src"`
	FeeType         string `yaml:"fee_type"`
	FeeCode         string `yaml:"fee_code"`
}

// Group is candidates in order: priority 0 is primary, 1 backup.
type Group struct {
	ID      int32    `yaml:"id"`
	Name    string   `yaml:"name"`
	Members []Member `yaml:"members"`
}

// Member is one candidate of a group.
type Member struct {
	Channel  string `yaml:"channel"` // by name
	Priority int16  `yaml:"priority"`
	Weight   int16  `yaml:"weight"` // default 1
}

// PrefixRule sends a prefix to a carrier before the number table is asked.
type PrefixRule struct {
	Prefix  string `yaml:"prefix"`
	Carrier string `yaml:"carrier"`
}

// ResultClass says what follows a supplier's result code; channel "" is all channels.
type ResultClass struct {
	Channel string `yaml:"channel"`
	Code    int32  `yaml:"code"`
	Class   string `yaml:"class"`
}

// item remembers where its value stands in the file.
type item[T any] struct {
	V    T
	Line int
}

// UnmarshalYAML keeps strictness: a custom decoder would lose it.
func (i *item[T]) UnmarshalYAML(n *yaml.Node) error {
	i.Line = n.Line
	return n.Load(&i.V, yaml.WithKnownFields())
}

// Load reads and checks a file; the error joins every fault found, each with its line.
func Load(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	var f File
	if err := yaml.Load(raw, &f, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("seed %s: %w", path, err)
	}
	c := checker{path: path}
	c.file(&f)
	return &f, errors.Join(c.faults...)
}

type checker struct {
	path   string
	faults []error
}

func (c *checker) fault(line int, field string, value any, allowed string) {
	c.faults = append(c.faults, fmt.Errorf("%s:%d: %s: %v, must be %s", c.path, line, field, value, allowed))
}

func (c *checker) between(line int, field string, value, low, high int64) {
	if value < low || value > high {
		c.fault(line, field, value, fmt.Sprintf("%d..%d", low, high))
	}
}

func (c *checker) digits(line int, field, value string, most int) {
	if len(value) > most || strings.Trim(value, "0123456789") != "" {
		c.fault(line, field, fmt.Sprintf("%q", value), fmt.Sprintf("at most %d digits", most))
	}
}

func (c *checker) width(line int, field, value string, least, most int) {
	if len(value) < least || len(value) > most {
		c.fault(line, field, fmt.Sprintf("%q", value), fmt.Sprintf("%d..%d octets", least, most))
	}
}

// word fills in the default and gives the number stored for a word.
func word[T ~int16 | ~uint8](c *checker, line int, field string, value string, def string, words map[string]T) T {
	if value == "" {
		value = def
	}
	v, ok := words[value]
	if !ok {
		list := make([]string, 0, len(words))
		for w := range words {
			list = append(list, w)
		}
		slices.Sort(list)
		c.fault(line, field, fmt.Sprintf("%q", value), "one of "+strings.Join(list, ", "))
	}
	return v
}

var (
	statusWords   = map[string]int16{"active": 1, "disabled": 2}
	versionWords  = map[string]int16{"any": 0, "2.0": 0x20, "2.1": 0x21, "3.0": 0x30}
	supplierWords = map[string]int16{"2.0": 0x20, "2.1": 0x21, "3.0": 0x30}
	unitWords     = map[string]sms.UnitRule{sms.RuleCN7067.String(): sms.RuleCN7067, sms.RuleGSM160153.String(): sms.RuleGSM160153}
	chargeWords   = map[string]message.ChargeOn{"accept": message.ChargeOnAccept, "deliver": message.ChargeOnDeliver}
	refundWords   = map[string]message.RefundOn{"never": message.RefundNever, "final_failed_receipt": message.RefundOnFailedReceipt}
	laneWords     = map[string]message.Lane{"verification": message.Verification, "notification": message.Notification, "marketing": message.Marketing}
	classWords    = map[string]message.ResultClass{"retry-other": message.RetryOther, "retry-later": message.RetryLater, "reroute-carrier": message.RerouteCarrier, "terminal": message.Terminal}
	carrierWords  = map[string]routing.Carrier{"mobile": routing.Mobile, "unicom": routing.Unicom, "telecom": routing.Telecom, "broadnet": routing.Broadnet}
)

func (c *checker) file(f *File) {
	enterprises := seen[int32]{}
	for _, e := range f.Enterprises {
		enterprises.add(c, e.Line, "enterprises.id", e.V.ID)
		c.between(e.Line, "enterprises.id", int64(e.V.ID), 1, 1<<31-1)
		c.width(e.Line, "enterprises.name", e.V.Name, 1, 100)
		c.between(e.Line, "enterprises.opening", e.V.Opening, 0, 1<<53)
		c.between(e.Line, "enterprises.credit", e.V.Credit, 0, 1<<53)
		word(c, e.Line, "enterprises.status", e.V.Status, "active", statusWords)
	}
	suppliers := map[string]Supplier{}
	supplierIDs := seen[int32]{}
	for _, s := range f.Suppliers {
		supplierIDs.add(c, s.Line, "suppliers.id", s.V.ID)
		if _, twice := suppliers[s.V.Name]; twice {
			c.fault(s.Line, "suppliers.name", s.V.Name, "unique")
		}
		suppliers[s.V.Name] = s.V
		c.width(s.Line, "suppliers.sp_id", s.V.SPID, 1, 6)
		c.between(s.Line, "suppliers.max_connections", int64(s.V.MaxConnections), 1, 8)
		c.between(s.Line, "suppliers.max_window", int64(s.V.MaxWindow), 1, 64)
		c.between(s.Line, "suppliers.max_tps", int64(s.V.MaxTPS), 0, 1_000_000)
		if !strings.Contains(s.V.Addr, ":") {
			c.fault(s.Line, "suppliers.addr", fmt.Sprintf("%q", s.V.Addr), "host:port")
		}
		word(c, s.Line, "suppliers.version", s.V.Version, "3.0", supplierWords)
	}
	channels := c.channels(f, suppliers)
	groups := map[string]bool{}
	groupIDs := seen[int32]{}
	for _, g := range f.Groups {
		groupIDs.add(c, g.Line, "groups.id", g.V.ID)
		groups[g.V.Name] = true
		if len(g.V.Members) == 0 {
			c.fault(g.Line, "groups.members", "empty", "at least one channel")
		}
		for _, m := range g.V.Members {
			if !channels[m.Channel] {
				c.fault(g.Line, "groups.members.channel", m.Channel, "the name of a channel of this file")
			}
			c.between(g.Line, "groups.members.priority", int64(m.Priority), 0, 100)
			c.between(g.Line, "groups.members.weight", int64(m.Weight), 0, 1000)
		}
	}
	c.applications(f, enterprises, groups)
	for _, r := range f.PrefixRules {
		c.width(r.Line, "prefix_rules.prefix", r.V.Prefix, 1, 13)
		c.digits(r.Line, "prefix_rules.prefix", r.V.Prefix, 13)
		word(c, r.Line, "prefix_rules.carrier", r.V.Carrier, "", carrierWords)
	}
	for _, r := range f.ResultClasses {
		if r.V.Channel != "" && !channels[r.V.Channel] {
			c.fault(r.Line, "result_classes.channel", r.V.Channel, "the name of a channel of this file, or empty for all")
		}
		c.between(r.Line, "result_classes.code", int64(r.V.Code), 1, 1<<31-1)
		word(c, r.Line, "result_classes.class", r.V.Class, "", classWords)
	}
}

func (c *checker) channels(f *File, suppliers map[string]Supplier) map[string]bool {
	names := map[string]bool{}
	ids := seen[int32]{}
	for _, ch := range f.Channels {
		ids.add(c, ch.Line, "channels.id", ch.V.ID)
		if names[ch.V.Name] {
			c.fault(ch.Line, "channels.name", ch.V.Name, "unique")
		}
		names[ch.V.Name] = true
		s, ok := suppliers[ch.V.Supplier]
		if !ok {
			c.fault(ch.Line, "channels.supplier", ch.V.Supplier, "the name of a supplier of this file")
			s = Supplier{MaxConnections: 8, MaxWindow: 64}
		}
		c.between(ch.Line, "channels.connections", int64(ch.V.Connections), 1, min(8, int64(s.MaxConnections)))
		c.between(ch.Line, "channels.window", int64(ch.V.Window), 1, min(64, int64(s.MaxWindow)))
		c.between(ch.Line, "channels.rate_limit", int64(ch.V.RateLimit), 0, 1_000_000)
		c.width(ch.Line, "channels.access_number", ch.V.AccessNumber, 1, 21)
		c.digits(ch.Line, "channels.access_number", ch.V.AccessNumber, 21)
		c.width(ch.Line, "channels.service_id", ch.V.ServiceID, 0, 10)
		c.width(ch.Line, "channels.msg_src", ch.V.MsgSrc, 0, 6)
		c.width(ch.Line, "channels.fee_type", ch.V.FeeType, 0, 2)
		c.width(ch.Line, "channels.fee_code", ch.V.FeeCode, 0, 6)
		word(c, ch.Line, "channels.carrier", ch.V.Carrier, "", carrierWords)
	}
	return names
}

func (c *checker) applications(f *File, enterprises seen[int32], groups map[string]bool) {
	ids, logins := seen[int32]{}, seen[string]{}
	for _, a := range f.Applications {
		ids.add(c, a.Line, "applications.id", a.V.ID)
		logins.add(c, a.Line, "applications.sp_id", a.V.SPID)
		if !enterprises[a.V.Enterprise] {
			c.fault(a.Line, "applications.enterprise", a.V.Enterprise, "the id of an enterprise of this file")
		}
		c.width(a.Line, "applications.name", a.V.Name, 1, 100)
		c.width(a.Line, "applications.sp_id", a.V.SPID, 1, 6)
		c.width(a.Line, "applications.secret", a.V.Secret, 1, 100)
		if a.V.Price == nil {
			c.fault(a.Line, "applications.price", "missing", "0 or more, in 1/10,000 yuan per unit")
		} else {
			c.between(a.Line, "applications.price", *a.V.Price, 0, 1_000_000)
		}
		c.between(a.Line, "applications.max_connections", int64(a.V.MaxConnections), 0, 64)
		c.between(a.Line, "applications.window", int64(a.V.Window), 0, 256)
		c.digits(a.Line, "applications.access_number", a.V.AccessNumber, 21)
		word(c, a.Line, "applications.status", a.V.Status, "active", statusWords)
		word(c, a.Line, "applications.version", a.V.Version, "any", versionWords)
		word(c, a.Line, "applications.unit_rule", a.V.UnitRule, sms.RuleCN7067.String(), unitWords)
		word(c, a.Line, "applications.charge_on", a.V.ChargeOn, "accept", chargeWords)
		word(c, a.Line, "applications.refund_on", a.V.RefundOn, "final_failed_receipt", refundWords)
		word(c, a.Line, "applications.lane", a.V.Lane, "notification", laneWords)
		for carrier, group := range a.V.Routes {
			word(c, a.Line, "applications.routes", carrier, "", carrierWords)
			if !groups[group] {
				c.fault(a.Line, "applications.routes."+carrier, group, "the name of a group of this file")
			}
		}
	}
}

type seen[K comparable] map[K]bool

func (s seen[K]) add(c *checker, line int, field string, key K) {
	if s[key] {
		c.fault(line, field, key, "unique")
	}
	s[key] = true
}
