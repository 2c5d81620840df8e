package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"cmppgateway/scenarios/internal/spec"
)

// Files of the gateway in a run directory.
const (
	configFile = "gateway.yaml"
	seedFile   = "seed.yaml"
)

// gatewayFiles are what the gateway is started with, beside the scenario.
type gatewayFiles struct {
	Postgres, Redis          string
	Inbound, Callback, Admin string // host:port
	Wire                     string // URL that the edge reaches the core by; empty is the core's own
}

// ports picks the addresses of the gateway: free a moment ago. Whether they still
// are shows when it listens on them.
func (f *gatewayFiles) ports(ctx context.Context) error {
	var lc net.ListenConfig
	for _, dst := range []*string{&f.Inbound, &f.Callback, &f.Admin} {
		l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("pick a port: %w", err)
		}
		*dst = l.Addr().String()
		defer l.Close()
	}
	return nil
}

// taken lists the addresses that something listens on.
func (f *gatewayFiles) taken(ctx context.Context) []string {
	var lc net.ListenConfig
	var list []string
	for _, addr := range []string{f.Inbound, f.Callback, f.Admin} {
		l, err := lc.Listen(ctx, "tcp4", addr)
		if err != nil {
			list = append(list, addr)
			continue
		}
		_ = l.Close()
	}
	return list
}

// config writes the configuration file: the scenario's settings under what is the
// harness's to say.
func (f *gatewayFiles) config(path string, s *spec.Scenario) error {
	settings := maps.Clone(s.Gateway)
	if settings == nil {
		settings = map[string]any{}
	}
	maps.Copy(settings, map[string]any{
		"node.name": "scenario-" + s.Name, "postgres.url": f.Postgres, "redis.url": f.Redis,
		"inbound.listen": f.Inbound, "callback.listen": f.Callback, "admin.listen": f.Admin,
		"supplier.allow_remote": false, "log.format": "text",
	})
	if f.Wire != "" {
		settings["event.url"] = f.Wire
	}
	b, err := yaml.Marshal(spec.Nested(settings))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, b, 0o600) // it holds a password
}

// The logins of a run: at most six octets.
func customerID(i int) string { return fmt.Sprintf("%06d", 910001+i) }
func supplierID(i int) string { return fmt.Sprintf("%06d", 920001+i) }

const (
	customerSecret = "customer-secret"
	supplierSecret = "supplier-secret"
)

// channel is one supplier account with its one channel, and what it is for.
type channel struct {
	ID       int32
	Name     string // carrier-role, the name of account and channel
	Login    string
	Carrier  int // index in the scenario
	Priority int
	Access   string
}

// channels lists a scenario's channels, roles of a carrier in order of priority.
func channels(s *spec.Scenario) []channel {
	var list []channel
	for i, c := range s.Carriers {
		for priority, role := range s.Suppliers.PerCarrier {
			n := len(list)
			list = append(list, channel{
				ID: int32(n + 1), Name: c.Name + "-" + role, Login: supplierID(n), Carrier: i, Priority: priority,
				Access: fmt.Sprintf("1069%04d", 1000+n),
			})
		}
	}
	return list
}

// Shapes of the seed file, as the gateway's `seed` reads it.
type (
	seedEnterprise struct {
		ID      int    `yaml:"id"`
		Name    string `yaml:"name"`
		Opening int64  `yaml:"opening"`
	}
	seedApplication struct {
		ID             int               `yaml:"id"`
		Enterprise     int               `yaml:"enterprise"`
		Name           string            `yaml:"name"`
		SPID           string            `yaml:"sp_id"`
		Secret         string            `yaml:"secret"`
		Price          int64             `yaml:"price"`
		MaxConnections int               `yaml:"max_connections"`
		Window         int               `yaml:"window"`
		Lane           string            `yaml:"lane,omitempty"`
		Routes         map[string]string `yaml:"routes"`
	}
	seedSupplier struct {
		ID             int32  `yaml:"id"`
		Name           string `yaml:"name"`
		Addr           string `yaml:"addr"`
		SPID           string `yaml:"sp_id"`
		Secret         string `yaml:"secret"`
		MaxConnections int    `yaml:"max_connections"`
		MaxWindow      int    `yaml:"max_window"`
		MaxTPS         int    `yaml:"max_tps"`
	}
	seedChannel struct {
		ID              int32  `yaml:"id"`
		Name            string `yaml:"name"`
		Supplier        string `yaml:"supplier"`
		Carrier         string `yaml:"carrier"`
		Enabled         bool   `yaml:"enabled"`
		Connections     int    `yaml:"connections"`
		Window          int    `yaml:"window"`
		RateLimit       int    `yaml:"rate_limit"`
		WarmupSeconds   int    `yaml:"warmup_seconds"`
		ResponseSeconds int    `yaml:"response_seconds"`
		AccessNumber    string `yaml:"access_number"`
	}
	seedMember struct {
		Channel  string `yaml:"channel"`
		Priority int    `yaml:"priority"`
	}
	seedGroup struct {
		ID      int          `yaml:"id"`
		Name    string       `yaml:"name"`
		Members []seedMember `yaml:"members"`
	}
	seedPrefix struct {
		Prefix  string `yaml:"prefix"`
		Carrier string `yaml:"carrier"`
	}
	seedData struct {
		Enterprises  []seedEnterprise  `yaml:"enterprises"`
		Applications []seedApplication `yaml:"applications"`
		Suppliers    []seedSupplier    `yaml:"suppliers"`
		Channels     []seedChannel     `yaml:"channels"`
		Groups       []seedGroup       `yaml:"groups"`
		PrefixRules  []seedPrefix      `yaml:"prefix_rules"`
	}
)

// seed writes the seed file: the scenario's enterprises, suppliers at addr.
func seed(path string, s *spec.Scenario, addr string) error {
	d := seedData{}
	routes := map[string]string{}
	for i, c := range s.Carriers {
		d.Groups = append(d.Groups, seedGroup{ID: i + 1, Name: c.Name})
		routes[c.Name] = c.Name
		for _, prefix := range c.Prefixes {
			d.PrefixRules = append(d.PrefixRules, seedPrefix{prefix, c.Name})
		}
	}
	contract := s.Contract()
	for _, c := range initial(s) {
		d.Suppliers = append(d.Suppliers, seedSupplier{
			ID: c.ID, Name: c.Name, Addr: addr, SPID: c.Login, Secret: supplierSecret,
			MaxConnections: contract.Connections, MaxWindow: contract.Window, MaxTPS: c.RateLimit,
		})
		d.Channels = append(d.Channels, seedChannel{
			ID: c.ID, Name: c.Name, Supplier: c.Name, Carrier: s.Carriers[c.Carrier].Name, Enabled: c.Enabled, Connections: c.Pool.Connections, Window: c.Pool.Window,
			RateLimit: c.RateLimit, ResponseSeconds: int(s.Suppliers.Response.Seconds()), AccessNumber: c.Access,
		})
		d.Groups[c.Carrier].Members = append(d.Groups[c.Carrier].Members, seedMember{c.Name, c.Priority})
	}
	for i, e := range s.Enterprises {
		d.Enterprises = append(d.Enterprises, seedEnterprise{i + 1, e.ID, e.Balance})
		d.Applications = append(d.Applications, seedApplication{
			ID: i + 1, Enterprise: i + 1, Name: e.ID, SPID: customerID(i), Secret: customerSecret, Price: s.Price,
			MaxConnections: e.Connections, Window: e.Window, Lane: e.Lane, Routes: routes,
		})
	}
	b, err := yaml.Marshal(d)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, b, 0o600)
}

// effective is what the harness reads of GET /api/admin/effective.
type effective struct {
	Version  string                       `json:"version"`
	PID      int                          `json:"pid"`
	SHA256   string                       `json:"binarySha256"`
	Config   map[string]any               `json:"config"`
	Postgres map[string]map[string]string `json:"postgres"`
	Redis    map[string]string            `json:"redis"`
	Settings struct {
		Applications []struct {
			ID    int32
			SPID  string
			Price int64
		} `json:"applications"`
		Channels []effectiveChannel `json:"channels"`
	} `json:"settings"`
	Channels []struct {
		Channel     int32  `json:"channel"`
		Name        string `json:"name"`
		State       string `json:"state"`
		Detail      string `json:"detail"`
		Connections []struct {
			State     string `json:"state"`
			Window    int    `json:"window"`
			LastError string `json:"lastError"`
		} `json:"connections"`
	} `json:"channels"`
	Errors []string `json:"errors"`
}

// effectiveChannel is a channel as the gateway's settings have it.
type effectiveChannel struct {
	ID                 int32
	Name               string
	Enabled            bool
	DesiredConnections int
	WindowSize         int
	RateLimit          int
}

// get reads JSON from the gateway, with the status it came with.
func get(ctx context.Context, client *http.Client, url string, into any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics))
	if err != nil {
		return resp.StatusCode, err
	}
	return resp.StatusCode, json.Unmarshal(body, into)
}

// poll calls f every 50 ms until it is done or ctx ends; then the error says what
// f waited for last.
func poll(ctx context.Context, limit time.Duration, f func(ctx context.Context) (waitsFor string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		waits, err := f(ctx)
		if err != nil {
			return err
		}
		if waits == "" {
			return nil
		}
		if ctx.Err() == nil {
			last = waits
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) && context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // this very deadline, not one above
				return fmt.Errorf("after %s: %s", limit, last)
			}
			return context.Cause(ctx)
		}
	}
}

// startGateway starts the binary as a child with its log in the run directory, and with
// env beside what every child gets.
func startGateway(binary, dir string, log io.Writer, env ...string) (*child, error) {
	cmd := exec.Command(binary, "--config", filepath.Join(dir, configFile), "serve") //nolint:noctx // it is stopped by stop, in order
	cmd.Env = append(environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	return startChild(cmd)
}

// ready waits until /readyz says so and the answer comes from the child itself.
func ready(ctx context.Context, client *http.Client, f *gatewayFiles, c *child, limit time.Duration) (effective, error) {
	var e effective
	err := poll(ctx, limit, func(ctx context.Context) (string, error) {
		if !c.alive() {
			return "", fmt.Errorf("it ended with exit code %d", c.exitCode())
		}
		var state struct {
			Ready  bool   `json:"ready"`
			Stage  string `json:"stage"`
			Broken []struct {
				Check string `json:"check"`
				Why   string `json:"why"`
			} `json:"broken"`
		}
		if _, err := get(ctx, client, "http://"+f.Admin+"/readyz", &state); err != nil {
			return "it does not answer: " + err.Error(), nil //nolint:nilerr // it is asked again
		}
		if !state.Ready {
			return fmt.Sprintf("it is %s: %v", state.Stage, state.Broken), nil
		}
		e = effective{}
		if status, err := get(ctx, client, "http://"+f.Admin+"/api/admin/effective", &e); err != nil || status != http.StatusOK {
			return fmt.Sprintf("its settings cannot be read: status %d, %v", status, err), nil
		}
		if e.PID != c.pid() {
			return fmt.Sprintf("process %d answers, not %d", e.PID, c.pid()), nil
		}
		return "", nil
	})
	return e, err
}

// durability is the settings that decide what survives, as every pool's sessions
// have them (matches refuses pools that differ), and Redis's.
func (e *effective) durability() map[string]string {
	out := maps.Clone(e.Redis)
	if out == nil {
		out = map[string]string{}
	}
	for _, d := range e.Postgres {
		for name, v := range d {
			if name != "clock" {
				out[name] = v
			}
		}
	}
	return out
}

// matches compares the settings the gateway really runs with to the scenario and to
// what its channels are to have now; waitsFor is what may still come (links that log
// in, settings that are read within a second).
func (e *effective) matches(s *spec.Scenario, want []setting) (waitsFor string, err error) {
	if len(e.Errors) > 0 {
		return "", fmt.Errorf("the gateway cannot read its settings: %s", strings.Join(e.Errors, "; "))
	}
	for _, a := range e.Settings.Applications {
		if a.Price != s.Price {
			return "", fmt.Errorf("application %s has price %d, the scenario %d", a.SPID, a.Price, s.Price)
		}
	}
	if len(e.Settings.Applications) != len(s.Enterprises) {
		return "", fmt.Errorf("%d applications, the scenario has %d", len(e.Settings.Applications), len(s.Enterprises))
	}
	for pool, d := range e.Postgres {
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			if d[name] != "on" {
				return "", fmt.Errorf("pool %s runs with %s=%s: nothing measured here would survive a crash", pool, name, d[name])
			}
		}
	}
	for i := range want {
		w := &want[i]
		at := slices.IndexFunc(e.Settings.Channels, func(x effectiveChannel) bool { return x.ID == w.ID })
		if at < 0 {
			return "", fmt.Errorf("channel %s is not in the gateway's settings", w.Name)
		}
		x := e.Settings.Channels[at]
		if x.Enabled != w.Enabled || x.DesiredConnections != w.Pool.Connections || x.WindowSize != w.Pool.Window || x.RateLimit != w.RateLimit {
			return fmt.Sprintf("channel %s runs with enabled %t, %d × %d, rate %d; it is to be enabled %t, %d × %d, rate %d", w.Name,
				x.Enabled, x.DesiredConnections, x.WindowSize, x.RateLimit, w.Enabled, w.Pool.Connections, w.Pool.Window, w.RateLimit), nil
		}
		if waitsFor := e.links(w); waitsFor != "" {
			return waitsFor, nil
		}
	}
	return "", nil
}

// links says what a channel's connections still lack, or have too much.
func (e *effective) links(c *setting) string {
	want := c.effectivePool()
	for _, x := range e.Channels {
		if x.Channel != c.ID {
			continue
		}
		active, detail := 0, x.Detail
		for _, l := range x.Connections {
			if l.State == "active" && l.Window == want.Window {
				active++
			} else if l.LastError != "" {
				detail = l.LastError
			}
		}
		if c.Enabled && x.State != "open" || active != want.Connections {
			return fmt.Sprintf("channel %s is %s with %d of %d connections active %s", c.Name, x.State, active, want.Connections, detail)
		}
		return ""
	}
	if want.Connections == 0 {
		return ""
	}
	return fmt.Sprintf("channel %s does not run", c.Name)
}

// flatten lists nested settings by path, for people.
func flatten(m map[string]any) map[string]string {
	out := map[string]string{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		if inner, ok := v.(map[string]any); ok {
			for key, x := range inner {
				walk(strings.TrimPrefix(prefix+"."+key, "."), x)
			}
			return
		}
		out[prefix] = fmt.Sprint(v)
	}
	walk("", m)
	return out
}
