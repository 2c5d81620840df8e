package result_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cmppgateway/reports/result"
)

func series() []result.Second {
	return []result.Second{
		{Second: 0, Step: "warm-up, first", Offered: 200, Accepted: 199, FirstSubmit: 198, Final: 0, P50: new(15.25), P95: new(33.0), P99: new(61.5), InFlight: 7, HiccupMS: new(0.0), Steal: new(0.02)},
		{Second: 1, Offered: 0},
	}
}

func TestSaveLoad(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs", "x")
	want := filled()
	if err := result.Save(dir, want, series()); err != nil {
		t.Fatal(err)
	}
	write(t, dir, result.ScenarioFile, "seed: 1\n")
	write(t, dir, result.ReproFile, "#!/bin/sh\n")
	write(t, dir, result.GatewayLogFile, "a\nb\n")
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&run.Report, want) {
		t.Error("the report changed on its way through the directory")
	}
	if !reflect.DeepEqual(run.Series, series()) {
		t.Errorf("series %+v", run.Series)
	}
	if run.Scenario != "seed: 1\n" || run.Repro != "#!/bin/sh\n" || run.GatewayLog != "a\nb\n" {
		t.Errorf("texts %q %q %q", run.Scenario, run.Repro, run.GatewayLog)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 {
		t.Errorf("%d files in the run, want 5: temporary files stay behind", len(files))
	}
}

func TestLoadWithoutOptionalFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := result.Save(dir, filled(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, result.SeriesFile)); err != nil {
		t.Fatal(err)
	}
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Series) != 0 || run.Scenario != "" || run.Repro != "" || run.GatewayLog != "" {
		t.Errorf("absent files have content: %+v", run)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := result.Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no report: %v", err)
	}
	write(t, dir, result.ReportFile, "{")
	if _, err := result.Load(dir); err == nil {
		t.Error("half a report was loaded")
	}
	if err := result.Save(dir, filled(), nil); err != nil {
		t.Fatal(err)
	}
	write(t, dir, result.SeriesFile, "second\n")
	if _, err := result.Load(dir); err == nil {
		t.Error("a foreign series was loaded")
	}
}

func TestGatewayLogTail(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %04d %s\n", i, strings.Repeat("x", 80))
	}
	for name, c := range map[string]struct {
		log         string
		lines       int
		first, last string
	}{
		"long":       {long.String(), 60, "line 4940", "line 4999"},
		"short":      {"one\ntwo", 2, "one", "two"},
		"empty":      {"", 0, "", ""},
		"not utf-8":  {"caf\xe9\n", 1, "caf�", "caf�"},
		"huge lines": {strings.Repeat("y", 100_000) + "\nend\n", 1, "end", "end"},
	} {
		dir := t.TempDir()
		if err := result.Save(dir, filled(), nil); err != nil {
			t.Fatal(err)
		}
		write(t, dir, result.GatewayLogFile, c.log)
		run, err := result.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(run.GatewayLog, "\n"), "\n")
		if run.GatewayLog == "" {
			lines = nil
		}
		if len(lines) != c.lines || (c.lines > 0 && (!strings.HasPrefix(lines[0], c.first) || !strings.HasPrefix(lines[len(lines)-1], c.last))) {
			t.Errorf("%s: %d lines %.40q, want %d", name, len(lines), run.GatewayLog, c.lines)
		}
	}
}

func TestReadSeriesErrors(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := result.WriteSeries(&b, series()); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for _, c := range []struct{ from, to, want string }{
		{"second,", "sec,", "header"},
		{"\n1,,0,", "\n1,,many,", "line 3, offered"},
		{"15.25", "fast", "line 2, submit_resp_p50_ms"},
		{"15.25", "NaN", "not a finite number"},
		{"\n1,,0,", "\n0,,0,", "second 0 after second 0"},
		{"\n1,,0,", "\n1,,", "wrong number of fields"},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		if bad == good {
			t.Fatalf("%q is not in the series", c.from)
		}
		if _, err := result.ReadSeries(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.to, err, c.want)
		}
	}
	if err := result.WriteSeries(&b, []result.Second{{P99: new(math.Inf(1))}}); err == nil {
		t.Error("an infinite percentile was written")
	}
	if _, err := result.ReadSeries(strings.NewReader("")); err == nil {
		t.Error("an empty file is no series")
	}
}

// FuzzReadSeries: whatever is read can be written and read again unchanged.
func FuzzReadSeries(f *testing.F) {
	var b bytes.Buffer
	if err := result.WriteSeries(&b, series()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		rows, err := result.ReadSeries(bytes.NewReader(in))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := result.WriteSeries(&out, rows); err != nil {
			t.Fatal(err)
		}
		first := out.String()
		again, err := result.ReadSeries(&out)
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, first)
		}
		var second bytes.Buffer
		if err := result.WriteSeries(&second, again); err != nil {
			t.Fatal(err)
		}
		if second.String() != first {
			t.Errorf("series changed:\n%s\n%s", first, second.String())
		}
	})
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
