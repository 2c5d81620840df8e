package cmppgateway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed    = regexp.MustCompile("`(Test\\w+)(?:/([^`]+))?`")
)

// Every test that docs/traps.md names exists, and every row of its tables names one.
func TestTrapsNameTheirTests(t *testing.T) {
	t.Parallel()
	functions := map[string][]string{} // by name, the sources that have it
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(source), -1) {
			functions[m[1]] = append(functions[m[1]], filepath.Dir(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("docs/traps.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, header := 0, true
	for line := range strings.Lines(string(text)) {
		switch {
		case !strings.HasPrefix(line, "|"):
			header = true
			continue
		case strings.HasPrefix(line, "|---"):
			header = false
			continue
		case header:
			continue
		}
		rows++
		names := testNamed.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test in the row %s", line)
		}
		for _, n := range names {
			if len(functions[n[1]]) == 0 {
				t.Errorf("%s does not exist: %s", n[1], line)
			} else if n[2] != "" && !hasCase(t, functions[n[1]], n[2]) {
				t.Errorf("%s has no case %q: %s", n[1], n[2], line)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows seen", rows)
	}
}

// hasCase looks for the name of a case as a string in the packages of its test.
func hasCase(t *testing.T, dirs []string, name string) bool {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(source), `"`+name+`"`) {
				return true
			}
		}
	}
	return false
}
