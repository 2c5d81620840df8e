package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cmppgateway/simulator/sp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines hands over what is written, line by line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	got  chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for {
		line, err := l.text.ReadString('\n')
		if err != nil {
			l.text.WriteString(line)
			return len(p), nil
		}
		l.got <- strings.TrimSuffix(line, "\n")
	}
}

func newLines() *lines { return &lines{got: make(chan string, 100)} }

// TestExample runs the shipped profile on free ports, looks at it over HTTP,
// and checks its counts: one deck, exactly.
func TestExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "profile.yaml")
	onFreePorts := strings.NewReplacer("127.0.0.1:7890", "127.0.0.1:0", "127.0.0.1:7891", "127.0.0.1:0", "tps: 200", "tps: 2000", "hold: 5s", "hold: 500ms", "rate_limit: 400", "rate_limit: 0", "max: 10s", "max: 500ms")
	if err := os.WriteFile(path, []byte(onFreePorts.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	statement := filepath.Join(dir, "statement.csv")
	out := newLines()
	failed := make(chan error, 1)
	go func() {
		failed <- run(ctx, []string{"serve", "--profile", path, "--statement", statement, "--log-level", "error"}, out, io.Discard)
	}()

	_, addr, ok := strings.Cut(<-out.got, "http=")
	if !ok {
		t.Fatal("no HTTP address printed")
	}
	const accepted, receipts = 1000 - 10 - 5, 1000 - 10 - 5 - 25 + 2
	var all struct {
		Suppliers ismgRecord
		Customers []spRecord
	}
	for len(all.Customers) == 0 || len(all.Customers[0].Receipts) < receipts {
		get(ctx, t, "http://"+addr+"/records", &all)
	}
	var health map[string]any
	get(ctx, t, "http://"+addr+"/healthz", &health)
	if health["status"] != "ok" || health["supplier_links"] != 2.0 || len(all.Suppliers.Submits) != 1000 {
		t.Errorf("health %v, %d submits", health, len(all.Suppliers.Submits))
	}
	cancel()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	const want = "suppliers: submits=1000 accepted=985 refused=15 answered=1000 reports=962 acked=962 violations=0; " +
		"customers: offered=1000 accepted=985 answered=1000 timed_out=0 unanswered=0 not_sent=0 receipts=962 duplicates=2"
	if got := <-out.got; got != want {
		t.Errorf("summary\n%s, want\n%s", got, want)
	}
	file, err := os.ReadFile(statement)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil || len(rows) != 1001 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	taken := 0
	for _, row := range rows[1:] {
		if row[5] == "0" {
			taken++
		}
	}
	if taken != accepted {
		t.Errorf("%d accepted in the statement, want %d", taken, accepted)
	}
}

// The records as JSON shows them; names of cards and states are text there.
type ismgRecord struct{ Submits []struct{ Number string } }

type spRecord struct{ Receipts []sp.Receipt }

func get(ctx context.Context, t *testing.T, url string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// TestDuration: the run ends by itself.
func TestDuration(t *testing.T) {
	t.Parallel()
	path := write(t, "listen: 127.0.0.1:0\nduration: 50ms\naccounts: [{id: \"900001\", secret: s}]\n")
	var out bytes.Buffer
	if err := run(context.Background(), []string{"serve", "--profile", path}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\nsuppliers: submits=0 ") {
		t.Errorf("output %q", out.String())
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBadInput: one line, and the error that becomes exit code 2.
func TestBadInput(t *testing.T) {
	t.Parallel()
	remote := write(t, "listen: 0.0.0.0:0\nduration: 10ms\naccounts: [{id: \"900001\", secret: s}]\n")
	wrong := write(t, "listen: 127.0.0.1:0\nseeds: 1\naccounts: [{id: \"900001\", window: -1, windows: 2}]\n")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "serve"},
		{"no profile", []string{"serve"}, "--profile"},
		{"unknown flag", []string{"serve", "--profiles", "x"}, "--profiles"},
		{"missing file", []string{"serve", "--profile", "/nonexistent.yaml"}, "no such file"},
		{"remote", []string{"serve", "--profile", remote}, "0.0.0.0:0 is not loopback"},
		{"both mistakes", []string{"serve", "--profile", wrong}, ":2:1: field seeds not found in type profile.File; " + wrong + ":3:39: field windows not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := run(context.Background(), c.args, io.Discard, io.Discard)
			if _, bad := errors.AsType[*inputError](err); !bad || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
		})
	}
	if err := run(context.Background(), []string{"serve", "--profile", remote, "--allow-remote"}, io.Discard, io.Discard); err != nil {
		t.Errorf("allowed remote: %v", err)
	}
	var help bytes.Buffer
	if err := run(context.Background(), []string{"--help"}, &help, io.Discard); err != nil || !strings.Contains(help.String(), "serve") {
		t.Errorf("help: %v, %q", err, help.String())
	}
}

// TestBusyPort: a failure of the run is not the caller's mistake.
func TestBusyPort(t *testing.T) {
	t.Parallel()
	out := newLines()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	first := write(t, "listen: 127.0.0.1:0\naccounts: [{id: \"900001\", secret: s}]\n")
	go func() { done <- run(ctx, []string{"serve", "--profile", first}, out, io.Discard) }()
	_, addr, _ := strings.Cut(<-out.got, "suppliers=")
	addr, _, _ = strings.Cut(addr, " ")
	err := run(ctx, []string{"serve", "--profile", write(t, "listen: "+addr+"\naccounts: [{id: \"900001\", secret: s}]\n")}, io.Discard, io.Discard)
	if _, bad := errors.AsType[*inputError](err); err == nil || bad {
		t.Errorf("error %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
