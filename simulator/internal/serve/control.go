package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// order is the body of POST /control: what to do, and to whom. Fields that the
// action does not name are ignored.
type order struct {
	Do      string `json:"do"`
	Account string `json:"account"` // of a supplier or a customer
	Conn    uint64 `json:"conn"`    // of a supplier's connection
	How     string `json:"how"`     // rst, fin or silence
	On      bool   `json:"on"`
	Status  uint32 `json:"status"`
	N       int    `json:"n"`
	Rate    int    `json:"rate"` // octets per second

	MaxConnections int `json:"max_connections"`
	Window         int `json:"window"`
	RateLimit      int `json:"rate_limit"`

	Command string   `json:"command"`
	Action  string   `json:"action"`
	Skip    int      `json:"skip"`
	Count   int      `json:"count"`
	Wait    duration `json:"wait"`

	Source string `json:"source"`
	Dest   string `json:"dest"`
	Text   string `json:"text"`
	Ref    uint16 `json:"ref"`
	Wide   bool   `json:"wide"`
	Order  []int  `json:"order"` // of segments; given, the uplink is a long one
}

// duration is a time.Duration written as text with its unit.
type duration time.Duration

// UnmarshalText reads a duration with its unit.
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = duration(v)
	return err
}

// control carries out orders.
type control struct {
	suppliers *ismg.Server
	customers []*sp.Client
	files     []string // ids of the customers
}

// badOrderError is an order that says nothing that can be done.
type badOrderError struct{ err error }

func (e *badOrderError) Error() string { return e.err.Error() }
func (e *badOrderError) Unwrap() error { return e.err }

const maxOrder = 64 << 10

// ServeHTTP takes one order and answers with what it came to.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o order
	dec := json.NewDecoder(io.LimitReader(r.Body, maxOrder))
	dec.DisallowUnknownFields()
	err := dec.Decode(&o)
	var out any
	if err != nil {
		err = &badOrderError{fmt.Errorf("body: %w", err)}
	} else {
		out, err = c.do(&o)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := http.StatusUnprocessableEntity
		if _, bad := errors.AsType[*badOrderError](err); bad {
			status = http.StatusBadRequest
		} else if errors.Is(err, ismg.ErrUnknown) {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		out = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(out) // the client went away; nobody to tell
}

var cuts = map[string]ismg.Cut{"rst": ismg.RST, "fin": ismg.FIN, "silence": ismg.Silence}

// actions are what can be ordered.
var actions = map[string]func(*control, *order) (any, error){
	"cut": func(c *control, o *order) (any, error) {
		how, ok := cuts[o.How]
		if !ok {
			return nil, &badOrderError{fmt.Errorf("how: %q is not rst, fin or silence", o.How)}
		}
		return c.suppliers.Cut(o.Conn, how)
	},
	"terminate":      func(c *control, o *order) (any, error) { return nil, c.suppliers.Terminate(o.Conn) },
	"refuse_logins":  func(c *control, o *order) (any, error) { return nil, c.suppliers.RefuseLogins(o.Account, o.Status) },
	"ignore_tests":   func(c *control, o *order) (any, error) { return nil, c.suppliers.IgnoreActiveTest(o.Account, o.On) },
	"split_writes":   func(c *control, o *order) (any, error) { return nil, c.suppliers.SplitWrites(o.Account, o.On) },
	"replay":         func(c *control, o *order) (any, error) { return c.suppliers.Replay(o.Account, o.N) },
	"limits":         limits,
	"rule":           addRule,
	"uplink":         uplink,
	"offline":        customer(func(c *sp.Client, o *order) any { c.SetOffline(o.On); return nil }),
	"mute":           customer(func(c *sp.Client, o *order) any { c.SetMute(o.On); return nil }),
	"slow":           customer(func(c *sp.Client, o *order) any { c.SetSlow(o.Rate); return nil }),
	"cut_customer":   customer(func(c *sp.Client, o *order) any { return c.CutAll(o.How == "rst") }),
	"customer_state": customer(func(c *sp.Client, _ *order) any { return c.Counts() }),
}

func (c *control) do(o *order) (any, error) {
	f, ok := actions[o.Do]
	if !ok {
		return nil, &badOrderError{fmt.Errorf("do: %q is none of %s", o.Do, strings.Join(slices.Sorted(maps.Keys(actions)), ", "))}
	}
	out, err := f(c, o)
	if err == nil && out == nil {
		out = map[string]bool{"done": true}
	}
	return out, err
}

func limits(c *control, o *order) (any, error) {
	l, err := c.suppliers.Limits(o.Account)
	if err != nil {
		return nil, err
	}
	for _, v := range []struct {
		dst  *int
		give int
	}{{&l.MaxConnections, o.MaxConnections}, {&l.Window, o.Window}, {&l.RateLimit, o.RateLimit}} {
		switch {
		case v.give > 0:
			*v.dst = v.give
		case v.give < 0: // none
			*v.dst = 0
		}
	}
	return l, c.suppliers.SetLimits(o.Account, l, cuts[o.How])
}

func addRule(c *control, o *order) (any, error) {
	_, err := c.suppliers.AddRule(ismg.Rule{
		Account: o.Account, Command: o.Command, Action: ismg.Action(o.Action), Status: o.Status, Skip: o.Skip, Count: o.Count, Wait: time.Duration(o.Wait),
	})
	if faults, bad := errors.AsType[ismg.FaultsError](err); bad {
		return nil, &badOrderError{faults}
	}
	return nil, err
}

func uplink(c *control, o *order) (any, error) {
	if len(o.Order) > 0 {
		return c.suppliers.SendLongUplink(o.Account, o.Source, o.Dest, o.Text, o.Ref, o.Wide, o.Order)
	}
	return c.suppliers.SendUplink(o.Account, o.Source, o.Dest, o.Text)
}

func customer(f func(*sp.Client, *order) any) func(*control, *order) (any, error) {
	return func(c *control, o *order) (any, error) {
		i := slices.Index(c.files, o.Account)
		if i < 0 {
			return nil, fmt.Errorf("customer %q: %w", o.Account, ismg.ErrUnknown)
		}
		return f(c.customers[i], o), nil
	}
}
