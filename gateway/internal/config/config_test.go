package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/config"
)

const example = "../../gateway.example.yaml"

var databaseOnly = []string{"DATABASE_URL=postgres://127.0.0.1/x"}

func write(t *testing.T, yaml string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExampleHoldsEverySettingAtItsDefault(t *testing.T) {
	t.Parallel()
	got, err := config.Load(example, databaseOnly)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Postgres.URL = "postgres://127.0.0.1/x"
	if got != want {
		t.Errorf("example is %+v,\nwant the defaults %+v", got, want)
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	// Every line is there: a file with each key changed to one that does not exist has as many faults as settings.
	broken := strings.NewReplacer(": ", "_x: ", ":\n", ":\n").Replace(string(text))
	_, err = config.Load(write(t, sectionsBack(broken)), databaseOnly)
	var faults config.FaultsError
	if !errors.As(err, &faults) || len(faults) != leaves(reflect.TypeFor[config.Config]()) {
		t.Errorf("example sets %d settings, there are %d:\n%v", len(faults), leaves(reflect.TypeFor[config.Config]()), err)
	}
}

// sectionsBack undoes the renaming for lines that open a section: their value is a comment.
func sectionsBack(yaml string) string {
	lines := strings.Split(yaml, "\n")
	for i, l := range lines {
		if _, after, ok := strings.Cut(l, "_x: "); ok && strings.HasPrefix(after, "#") {
			lines[i] = strings.Replace(l, "_x: ", ": ", 1)
		}
	}
	return strings.Join(lines, "\n")
}

func leaves(t reflect.Type) (n int) {
	for f := range t.Fields() {
		if f := f.Type; f.Kind() == reflect.Struct {
			n += leaves(f)
		} else {
			n++
		}
	}
	return n
}

func TestEverySettingSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for f := range typ.Fields() {
			switch {
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type)
			case f.Tag.Get("yaml") == "" || f.Tag.Get("allow") == "" && f.Type.Kind() != reflect.Bool:
				t.Errorf("%s.%s has no yaml name or no allowed values", typ.Name(), f.Name)
			case f.Tag.Get("allow") == "any" && f.Type.Kind() != reflect.String:
				t.Errorf("%s.%s is a number without bounds", typ.Name(), f.Name)
			}
		}
	}
	walk(reflect.TypeFor[config.Config]())
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, yaml, want string }{
		{"unknown section", "flow:\n  x: 1\n", "gateway.yaml:1: flow: no such setting"},
		{"unknown key", "workflow:\n  batch_maximum: 1\n", "gateway.yaml:2: workflow.batch_maximum: no such setting"},
		{"given twice", "log:\n  level: info\n  level: warn\n", "level"},
		{"not a number", "workflow:\n  workers: many\n", `gateway.yaml:2: workflow.workers is "many": want a whole number, allowed 1..64`},
		{"quoted number", "workflow:\n  workers: \"2\"\n", `gateway.yaml:2: workflow.workers is "2": want it without quotes`},
		{"list", "workflow:\n  workers: [2]\n", "gateway.yaml:2: workflow.workers: want one value"},
		{"section as value", "workflow: 3\n", "gateway.yaml:1: workflow: want settings, as in key: value"},
		{"not a bool", "supplier:\n  allow_remote: maybe\n", `gateway.yaml:2: supplier.allow_remote is "maybe": want true or false`},
		{"duration without unit", "workflow:\n  poll: 100\n", `gateway.yaml:2: workflow.poll is "100": want a duration with its unit, as in 500ms or 10s`},
		{"zero without unit", "supplier:\n  barrier_collect: 0\n", `supplier.barrier_collect is "0": want a duration with its unit`},
		{"below range", "inbound:\n  batch_max: 0\n", "gateway.yaml:2: inbound.batch_max is 0: allowed 1..4096"},
		{"wait too long", "workflow:\n  batch_max_wait: 51ms\n", "gateway.yaml:2: workflow.batch_max_wait is 51ms: allowed 0s..50ms"},
		{"target above max", "workflow:\n  batch_target: 300\n", "gateway.yaml:2: workflow.batch_target is 300: allowed up to workflow.batch_max (256)"},
		{"event timeout not above deadline", "event:\n  timeout: 8s\n", "callback.request_deadline is 8s: must be less than event.timeout (8s)"},
		{"client idles longer", "event:\n  idle_timeout: 2m\n", "gateway.yaml:2: event.idle_timeout is 2m0s: must be less than callback.idle_timeout (2m0s)"},
		{"delivery lease", "delivery:\n  lease: 121s\n", "gateway.yaml:2: delivery.lease is 2m1s: allowed 5s..120s"},
		{"ack after lease", "delivery:\n  ack_timeout: 30s\n", "delivery.ack_timeout is 30s: must be less than delivery.lease (30s)"},
		{"log level", "log:\n  level: loud\n", "gateway.yaml:2: log.level is loud: allowed debug|info|warn|error"},
		{"address", "inbound:\n  listen: 7890\n", "gateway.yaml:2: inbound.listen is 7890: want host:port"},
		{"port of an address", "inbound:\n  listen: x:70000\n", "gateway.yaml:2: inbound.listen is x:70000: want host:port"},
		{"TLS address", "inbound:\n  tls_listen: x\n  tls_cert: c\n  tls_key: k\n", "gateway.yaml:2: inbound.tls_listen is x: want host:port"},
		{"TLS without a certificate", "inbound:\n  tls_listen: :7891\n", `inbound.tls_cert is "": needed with inbound.tls_listen`},
		{"TLS on the plain port", "inbound:\n  tls_listen: 127.0.0.1:7890\n", "want another address than inbound.listen"},
		{"probe as long as the login", "inbound:\n  probe_timeout: 5s\n", "gateway.yaml:2: inbound.probe_timeout is 5s: must be less than inbound.login_timeout (5s)"},
		{"back-off above its most", "inbound:\n  login_backoff: 2m\n", "gateway.yaml:2: inbound.login_backoff is 2m0s: allowed up to inbound.login_backoff_max (1m0s)"},
		{"redis url", "redis:\n  url: http://x\n", "gateway.yaml:2: redis.url is no such URL: want redis://[:password@]host:port/db"},
		{"event url", "event:\n  url: core\n", "gateway.yaml:2: event.url is core: want http://host:port"},
		{"open callback without a token", "callback:\n  listen: :8090\n", `callback.token is "": needed when callback.listen is not on loopback`},
		{"admin API in the clear", "admin:\n  listen: 10.0.0.1:8091\n  token: x\n", `admin.listen is 10.0.0.1:8091: beyond loopback it needs admin.tls_cert`},
		{"admin certificate without its key", "admin:\n  tls_cert: c\n", "admin.tls_cert and tls_key belong together"},
		{"open admin API without a token", "admin:\n  listen: 10.0.0.1:8091\n", `admin.token is "": needed when admin.listen is not on loopback`},
		{"drain above total", "shutdown:\n  drain: 50s\n", "gateway.yaml:2: shutdown.drain is 50s: allowed up to shutdown.total (40s)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(write(t, c.yaml), databaseOnly)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestLoopbackNeedsNoToken(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"127.0.0.1:1", "localhost:1", "[::1]:1", "127.9.9.9:1"} {
		if _, err := config.Load("", append([]string{"CMPPGW_ADMIN_LISTEN=" + addr, "CMPPGW_CALLBACK_LISTEN=" + addr}, databaseOnly...)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := config.Load("", append([]string{"CMPPGW_ADMIN_LISTEN=0.0.0.0:1", "CMPPGW_ADMIN_TOKEN=t", "CMPPGW_ADMIN_PLAIN_TEXT=true"}, databaseOnly...)); err != nil {
		t.Errorf("with a token: %v", err)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	path := write(t, "node:\n  lease: 1s\nworkflow:\n  workers: 0\n  nap: 3\nadmin:\n  listen: nowhere\n")
	_, err := config.Load(path, []string{"CMPPGW_LOG_FORMAT=xml", "CMPPGW_NODE_LEASES=3s"})
	var faults config.FaultsError
	if !errors.As(err, &faults) {
		t.Fatalf("error %v, want faults", err)
	}
	got := make(map[string]int)
	for _, f := range faults {
		got[f.Path] = f.Line
	}
	want := map[string]int{
		"node.lease": 2, "workflow.workers": 4, "workflow.nap": 5, "admin.listen": 7, "log.format": 0,
		"CMPPGW_NODE_LEASES": 0, "postgres.url": 0,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("faults %v, want %v", got, want)
	}
}

func TestMalformedFile(t *testing.T) {
	t.Parallel()
	for _, path := range []string{write(t, "node: [\n"), filepath.Join(t.TempDir(), "missing.yaml")} {
		if _, err := config.Load(path, databaseOnly); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: error %v, want one that names the file", path, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	path := write(t, "redis:\n  url: redis://file:1/0\nworkflow:\n  workers: 3\n")
	for _, c := range []struct {
		name    string
		environ []string
		want    func(*config.Config)
	}{
		{"file alone", nil, func(c *config.Config) { c.Redis.URL = "redis://file:1/0" }},
		{"host and port alone", []string{"REDIS_HOST=r", "REDIS_PORT=6380"}, func(c *config.Config) { c.Redis.Host, c.Redis.Port = "r", 6380 }},
		{"url", []string{"REDIS_URL=redis://u:2/1", "REDIS_HOST=r"}, func(c *config.Config) { c.Redis.URL, c.Redis.Host = "redis://u:2/1", "r" }},
		{"own name wins", []string{"CMPPGW_REDIS_HOST=own", "REDIS_HOST=r"}, func(c *config.Config) { c.Redis.Host = "own" }},
		{"empty is not set", []string{"REDIS_HOST=", "REDIS_URL="}, func(c *config.Config) { c.Redis.URL = "redis://file:1/0" }},
		{
			"every kind",
			[]string{"CMPPGW_POSTGRES_POOLS_INBOX=9", "CMPPGW_SUPPLIER_ALLOW_REMOTE=false", "CMPPGW_NODE_GATEWAY_CODE=7", "CMPPGW_EVENT_BATCH_WAIT=3ms", "CMPPGW_WORKFLOW_WORKERS=5"},
			func(c *config.Config) {
				c.Redis.URL, c.Postgres.Pools.Inbox, c.Supplier.AllowRemote, c.Node.GatewayCode, c.Event.BatchWait, c.Workflow.Workers = "redis://file:1/0", 9, false, 7, 3*time.Millisecond, 5
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Load(path, append(c.environ, databaseOnly...))
			if err != nil {
				t.Fatal(err)
			}
			want := config.Default()
			want.Postgres.URL, want.Workflow.Workers = "postgres://127.0.0.1/x", 3
			c.want(&want)
			if got != want {
				t.Errorf("got %+v,\nwant %+v", got, want)
			}
		})
	}
}

func TestRedisHostAndPortAreEnough(t *testing.T) {
	t.Parallel()
	c, err := config.Load("", append([]string{"REDIS_HOST=10.1.2.3", "REDIS_PORT=7001"}, databaseOnly...))
	if err != nil {
		t.Fatal(err)
	}
	if c.Redis.URL != "" || c.Redis.Host != "10.1.2.3" || c.Redis.Port != 7001 {
		t.Errorf("redis %+v", c.Redis)
	}
}

func TestSecretsAreCut(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	c, err := config.Load("", []string{
		"DATABASE_URL=postgres://u:" + secret + "@h/x", "REDIS_URL=redis://:" + secret + "@h:1/0",
		"CMPPGW_REDIS_PASSWORD=" + secret, "CMPPGW_CALLBACK_TOKEN=" + secret, "CMPPGW_ADMIN_TOKEN=" + secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	var show func(any) []string
	show = func(v any) (out []string) {
		m, ok := v.(map[string]any)
		if !ok {
			s, _ := v.(string)
			return []string{s}
		}
		for _, v := range m {
			out = append(out, show(v)...)
		}
		return out
	}
	all := strings.Join(show(c.Effective()), " ")
	if strings.Contains(all, secret) {
		t.Errorf("secret shown in %s", all)
	}
	if !strings.Contains(all, "postgres://u:xxxxx@h/x") {
		t.Errorf("no redacted URL in %s", all)
	}
	// A faulty value that is a secret is not repeated either.
	if _, err := config.Load("", []string{"DATABASE_URL=postgres://x/y", "REDIS_URL=http://:" + secret + "@h"}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
}
