// Package cmppgateway_test holds what is true of the whole tree.
package cmppgateway_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "cmppgateway/"

// rules say who may import whom (ARCHITECTURE.md, layout). A package is judged by the first rule whose prefix it has;
// allowed are the listed prefixes inside the module. Tests may also import testenv and the simulator.
var rules = []struct{ pkg, why, allowed string }{
	{"gateway/cmpp", "the codec is a leaf: bytes and structs, nothing else", ""},
	{"gateway/sms", "text rules are a leaf", ""},
	{"gateway/internal/message", "the nouns import only cmpp and sms", "gateway/cmpp gateway/sms"},
	{"gateway/internal/session", "one connection knows the codec and nothing above it", "gateway/cmpp"},
	{"gateway/internal/config", "the configuration is read by all and reads nobody", ""},
	{"gateway/internal/policy", "policy is pure", "gateway/cmpp gateway/sms gateway/internal/message"},
	{"gateway/internal/segment", "joining is pure", "gateway/sms"},
	{"gateway/internal/routing", "routing is pure", "gateway/sms"},
	{"gateway/internal/inbound", "customers and suppliers share session, never each other", "gateway/cmpp gateway/sms gateway/internal/config gateway/internal/failpoint gateway/internal/message gateway/internal/segment gateway/internal/session gateway/internal/settings gateway/internal/store gateway/internal/wake"},
	{"gateway/internal/supplier", "customers and suppliers share session, never each other", "gateway/cmpp gateway/sms gateway/internal/config gateway/internal/event gateway/internal/failpoint gateway/internal/message gateway/internal/outbox gateway/internal/session gateway/internal/settings gateway/internal/store gateway/internal/wake"},
	{"gateway", "the gateway imports only itself", "gateway"},
	{"simulator/ismg", "the simulated supplier decodes with its own reader", "gateway/cmpp simulator"},
	{"simulator", "the simulator builds frames with the codec and knows nothing of the gateway", "gateway/cmpp gateway/sms simulator"},
	{"chaos", "faults know processes and frames", "gateway/cmpp chaos"},
	{"reports/result", "the run format is a leaf", ""},
	{"reports", "reports read runs", "reports"},
	{"testenv", "provisioning knows no program", "testenv"},
	{"scenarios", "the harness drives everything from outside", "scenarios simulator/ismg simulator/sp simulator/hostile simulator/simclock chaos reports testenv/stack gateway/cmpp gateway/sms"},
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg, inside := strings.CutPrefix(fields[0], module)
		if !inside {
			continue
		}
		seen++
		judge(t, pkg, fields[1:])
	}
	if seen < 20 {
		t.Fatalf("go list named %d packages; the rules were not applied to the tree", seen)
	}
}

func judge(t *testing.T, pkg string, imports []string) {
	t.Helper()
	for _, r := range rules {
		if !under(pkg, r.pkg) {
			continue
		}
		for _, imp := range imports {
			dep, inside := strings.CutPrefix(imp, module)
			if !inside || under(dep, pkg) {
				continue
			}
			allowed := false
			for a := range strings.FieldsSeq(r.allowed) {
				allowed = allowed || under(dep, a)
			}
			if !allowed {
				t.Errorf("%s imports %s: %s", pkg, dep, r.why)
			}
		}
		return
	}
	t.Errorf("%s has no import rule", pkg)
}

func under(pkg, prefix string) bool { return pkg == prefix || strings.HasPrefix(pkg, prefix+"/") }
