package profile

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"cmppgateway/simulator/ismg"
)

// File is a profile file.
type File struct {
	// Listen is the host:port the suppliers take connections on.
	Listen string `yaml:"listen"`
	// HTTP is the host:port of the HTTP view and control; empty means none.
	HTTP string `yaml:"http"`
	// Duration after which the program ends by itself; 0 means never.
	Duration time.Duration `yaml:"duration"`

	ismg.Profile `yaml:",inline"`

	// Customers to drive, if any.
	Customers []Customer `yaml:"customers"`
}

// Customer is one simulated customer and the load it offers.
type Customer struct {
	ID     string `yaml:"id"`
	Secret string `yaml:"secret"`
	// Addr of the gateway; empty means Listen, the suppliers themselves.
	Addr        string `yaml:"addr"`
	Version     uint8  `yaml:"version"`
	Connections int    `yaml:"connections"`
	Window      int    `yaml:"window"`
	// TPS offered for Hold, evenly spread or as a Poisson process.
	TPS      int           `yaml:"tps"`
	Hold     time.Duration `yaml:"hold"`
	Arrivals string        `yaml:"arrivals"` // even (default) or poisson
	// Numbers is the first recipient; each message takes the next.
	Numbers uint64 `yaml:"numbers"`
	SrcID   string `yaml:"src_id"`
	Text    string `yaml:"text"` // 1 to 160 7-bit characters
}

// Messages returns how many messages the customer offers.
func (c *Customer) Messages() int {
	return int(int64(c.TPS) * int64(c.Hold) / int64(time.Second))
}

// maxMessages bounds what one customer may offer in a run.
const maxMessages = 10_000_000

// Problem is one mistake in a file.
type Problem struct {
	Line, Column int // from 1; 0 when the place is not known
	Text         string
}

func (p Problem) String() string {
	return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text)
}

// ProblemsError is every mistake in a file, in the order of their places.
type ProblemsError []Problem

func (p ProblemsError) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "; ")
}

// Parse reads a file. Its error is a ProblemsError.
func Parse(data []byte) (File, error) {
	var root yaml.Node
	if err := yaml.Load(data, &root); err != nil {
		return File{}, problems(err)
	}
	var f File
	var found ProblemsError
	if err := root.Load(&f, yaml.WithKnownFields()); err != nil {
		found = problems(err)
	}
	found = append(found, octal(&root)...)
	if len(found) == 0 { // values are judged once they are all read
		for _, fault := range f.validate() {
			line, column := locate(&root, fault.Path)
			found = append(found, Problem{Line: line, Column: column, Text: fault.String()})
		}
	}
	if len(found) > 0 {
		slices.SortStableFunc(found, func(a, b Problem) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return File{}, found
	}
	return f, nil
}

// problems translates the errors of the YAML package, syntax and construction.
func problems(err error) ProblemsError {
	if many, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		var p ProblemsError
		for _, e := range many.Errors {
			p = append(p, Problem{Line: e.Mark.Line, Column: e.Mark.Column, Text: e.Message})
		}
		return p
	}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		return ProblemsError{{Line: e.Mark.Line, Column: e.Mark.Column, Text: e.Message}}
	}
	return ProblemsError{{Text: err.Error()}}
}

var leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// octal finds plain numbers with a leading zero.
func octal(n *yaml.Node) (found ProblemsError) {
	if n.Kind == yaml.ScalarNode && n.Style == 0 && leadingZero.MatchString(n.Value) {
		found = append(found, Problem{Line: n.Line, Column: n.Column, Text: "leading zero in " + n.Value})
	}
	for _, child := range n.Content {
		found = append(found, octal(child)...)
	}
	return found
}

// locate finds the place of a path such as accounts[0].window, or of the
// nearest thing around it that is there.
func locate(n *yaml.Node, path string) (line, column int) {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line, column = n.Line, n.Column
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := child(n, step)
		if next == nil {
			return line, column
		}
		n = next
		line, column = n.Line, n.Column
	}
	return line, column
}

func child(n *yaml.Node, step string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if strconv.Itoa(i) == step {
				return item
			}
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode, yaml.StreamNode:
	}
	return nil
}

func (f *File) validate() ismg.FaultsError {
	var faults ismg.FaultsError
	add := func(path, format string, args ...any) {
		faults = append(faults, ismg.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
	address := func(path, addr string) {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			add(path, "%q is not host:port", addr)
		}
	}
	address("listen", f.Listen)
	if f.HTTP != "" {
		address("http", f.HTTP)
	}
	if f.Duration < 0 {
		add("duration", "%s is negative", f.Duration)
	}
	faults = append(faults, f.Validate()...)
	for i := range f.Customers {
		c := &f.Customers[i]
		at := func(name string) string { return fmt.Sprintf("customers[%d].%s", i, name) }
		if len(c.ID) == 0 || len(c.ID) > 6 {
			add(at("id"), "%q must have 1 to 6 octets", c.ID)
		}
		if c.Addr != "" {
			address(at("addr"), c.Addr)
		}
		switch c.Version {
		case 0, 0x20, 0x21, 0x30:
		default:
			add(at("version"), "0x%02x is not 0x20, 0x21 or 0x30", c.Version)
		}
		if c.Connections < 0 || c.Connections > 1024 {
			add(at("connections"), "%d is not in 0…1024", c.Connections)
		}
		if c.Window < 0 || c.Window > 65536 {
			add(at("window"), "%d is not in 0…65536", c.Window)
		}
		if c.TPS < 0 || c.TPS > 100_000 || c.Hold < 0 || c.Hold > 24*time.Hour || c.Messages() > maxMessages {
			add(at("tps"), "%d for %s is not in 0…100000 for 0s…24h with at most %d messages", c.TPS, c.Hold, maxMessages)
		}
		if c.Arrivals != "" && c.Arrivals != "even" && c.Arrivals != "poisson" {
			add(at("arrivals"), "%q is not even or poisson", c.Arrivals)
		}
		if len(c.SrcID) > 21 {
			add(at("src_id"), "%q has more than 21 octets", c.SrcID)
		}
		if len(c.Text) > 160 || strings.ContainsFunc(c.Text, func(r rune) bool { return r > 0x7f }) {
			add(at("text"), "must be at most 160 7-bit characters")
		}
	}
	return faults
}

// Remote returns the addresses of the file that are not loopback. A name is
// taken for remote unless it is localhost.
func (f *File) Remote() []string {
	addrs := []string{f.Listen, f.HTTP}
	for i := range f.Customers {
		addrs = append(addrs, f.Customers[i].Addr)
	}
	return slices.DeleteFunc(addrs, func(addr string) bool {
		host, _, err := net.SplitHostPort(addr)
		ip := net.ParseIP(host)
		return err != nil || host == "localhost" || ip != nil && ip.IsLoopback()
	})
}
