package cmppgateway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Alerts rest on metrics that some part of the gateway registers: a renamed one would never fire again. Names put together
// from two texts count by their first.
func TestAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	alerts, err := os.ReadFile("docs/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	err = filepath.WalkDir("gateway", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	registered := regexp.MustCompile(`"(cmppgw_\w+)"`).FindAllStringSubmatch(sources.String(), -1)
	named := regexp.MustCompile(`cmppgw_\w+`).FindAllString(string(alerts), -1)
	if len(named) < 5 {
		t.Fatalf("%d metrics named in docs/alerts.yml; the test reads another file", len(named))
	}
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		plain := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			plain = strings.TrimSuffix(plain, suffix)
		}
		if !slices.ContainsFunc(registered, func(m []string) bool {
			return m[1] == name || m[1] == plain || strings.HasSuffix(m[1], "_") && strings.HasPrefix(name, m[1])
		}) {
			t.Errorf("docs/alerts.yml names %s, which nothing registers", name)
		}
	}
}
