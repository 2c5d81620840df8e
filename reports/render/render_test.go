package render_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"cmppgateway/reports/render"
	"cmppgateway/reports/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// examples are two stored runs: one that passes, and a ladder in which nearly
// everything went wrong.
func examples() []string { return []string{"pass", "violated"} }

func load(t *testing.T, name string) *result.Run {
	t.Helper()
	run, err := result.Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func html(t *testing.T, run *result.Run) string {
	t.Helper()
	return rendered(t, func(w io.Writer) error { return render.HTML(w, run) })
}

func rendered(t *testing.T, f func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range examples() {
		run := load(t, name)
		for file, f := range map[string]func(io.Writer) error{
			result.MarkdownFile: func(w io.Writer) error { return render.Markdown(w, run) },
			result.JUnitFile:    func(w io.Writer) error { return render.JUnit(w, &run.Report) },
			"terminal.txt":      func(w io.Writer) error { return render.Terminal(w, &run.Report) },
		} {
			got := rendered(t, f)
			golden := filepath.Join("testdata", name, "golden."+file)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s of %s changed (-update rewrites it):\n%s", file, name, firstDifference(got, string(want)))
			}
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// outside matches whatever could make a browser ask for something.
var outside = regexp.MustCompile(`(?i)https?:|\bsrc=|@import|url\(|<script|<iframe|<object|<embed|href="[^#"d]|href="d[^a]|\bon[a-z]+=`)

func TestHTMLStandsAlone(t *testing.T) {
	t.Parallel()
	for _, name := range examples() {
		page := html(t, load(t, name))
		if found := outside.FindString(page); found != "" {
			t.Errorf("%s: %q reaches outside the page", name, found)
		}
		const csp = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`
		if !strings.Contains(page, csp) {
			t.Errorf("%s: no content security policy", name)
		}
		for _, want := range []string{"font: 15px/1.5 sans-serif", "prefers-color-scheme: dark", "<svg "} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
	}
}

func TestEverythingIsNamed(t *testing.T) {
	t.Parallel()
	for _, name := range examples() {
		run := load(t, name)
		r := &run.Report
		page := html(t, run)
		md := rendered(t, func(w io.Writer) error { return render.Markdown(w, run) })
		var names []string
		for _, x := range r.Identities {
			names = append(names, x.ID, x.Enterprise)
			names = append(names, x.Witnesses...)
			names = append(names, x.Offenders...)
		}
		for _, x := range r.Checks {
			names = append(names, x.ID, x.Detail)
		}
		for _, x := range r.SLO {
			names = append(names, x.Metric)
		}
		for _, x := range r.Faults {
			names = append(names, x.ID, x.Proof)
		}
		for _, x := range r.Channels {
			for _, c := range x.Connections {
				names = append(names, c.ID)
			}
		}
		for _, x := range r.Stages {
			names = append(names, x.Name)
		}
		for _, x := range r.Queues {
			names = append(names, x.Name)
		}
		for k, v := range r.Environment.Durability {
			names = append(names, k, v)
		}
		names = append(names, r.Scenario, string(r.Verdict), r.Environment.Gateway.SHA256, r.Harness.Repro,
			"accepted at the entrance", "full chain", r.Reason)
		for _, want := range names {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page does not name %q", name, want)
			}
			if !strings.Contains(strings.ToLower(md), strings.ToLower(want)) {
				t.Errorf("%s: the Markdown does not name %q", name, want)
			}
		}
	}
}

func TestOrderOfSections(t *testing.T) {
	t.Parallel()
	page := html(t, load(t, "violated"))
	last := -1
	for _, id := range []string{"trust", "identities", "checks", "slo", "steps", "latency", "faults", "stages", "channels", "workflow", "billing", "delivery", "gate", "resources", "environment", "reproduction"} {
		at := strings.Index(page, `<section id="`+id+`">`)
		if at <= last {
			t.Errorf("section %s is at %d, before or at the one above it (%d)", id, at, last)
		}
		last = at
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `id="`+link[1]+`"`) {
			t.Errorf("link to #%s leads nowhere", link[1])
		}
	}
}

func TestBannerColours(t *testing.T) {
	t.Parallel()
	want := map[result.Verdict]string{
		result.VerdictPass: "pass", result.VerdictSLO: "fail", result.VerdictViolated: "fail", result.VerdictRegression: "fail",
		result.VerdictInvalid: "invalid", result.VerdictEnvironment: "env", result.VerdictAborted: "env", result.VerdictBadFile: "env",
	}
	for _, v := range result.Verdicts() {
		run := &result.Run{Report: result.Report{Verdict: v, Reason: "because of " + string(v)}}
		page := html(t, run)
		if !strings.Contains(page, `<header class="banner `+want[v]+`">`) {
			t.Errorf("%s: the banner is not %s", v, want[v])
		}
		if !strings.Contains(page, "because of "+string(v)) {
			t.Errorf("%s: the reason is missing", v)
		}
	}
}

func TestThinPercentilesSayWhy(t *testing.T) {
	t.Parallel()
	r := result.Report{Verdict: result.VerdictPass, Steps: []result.Step{{
		Name: "smoke", Valid: true,
		SubmitResp:  result.SubmitResp{Latency: result.NewLatency(9, 17, 1727, 1727), OK: 9},
		FirstSubmit: result.FirstSubmit{Latency: result.NewLatency(200, 31, 41, 51), TPS: new(3.0)},
	}}}
	run := &result.Run{Report: r}
	for name, text := range map[string]string{
		"html":     html(t, run),
		"markdown": rendered(t, func(w io.Writer) error { return render.Markdown(w, run) }),
		"terminal": rendered(t, func(w io.Writer) error { return render.Terminal(w, &r) }),
	} {
		for _, want := range []string{"n/a (n=9)", "n/a (n=200)", "17.0"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
		if strings.Contains(text, "1,727") || strings.Contains(text, "51.0") {
			t.Errorf("%s: a percentile of too few samples is shown", name)
		}
	}
}

// hostile carries what could break out of each of the four formats.
const hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> | `x` ``` \\ [a](b) ]]> &amp; {{.}} ${x}\n```\n````\n## head\n\x1b[31mred\x1b[0m\u202ereversed\x00"

// poison puts hostile text into every string of a report, also into map keys.
func poison(v reflect.Value) {
	switch v.Addr().Interface().(type) {
	case *result.Verdict, *result.Status, *result.Limit, *time.Time:
		return
	}
	switch v.Kind() { //nolint:exhaustive // only strings carry text
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			poison(f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := v.MapIndex(k)
			if e.Kind() == reflect.String {
				e = reflect.ValueOf(hostile)
			}
			v.SetMapIndex(k, reflect.Value{})
			v.SetMapIndex(reflect.ValueOf(k.String()+hostile), e)
		}
	case reflect.String:
		v.SetString(hostile)
	default:
	}
}

func TestHostileText(t *testing.T) {
	t.Parallel()
	for _, name := range examples() {
		clean := load(t, name)
		tags := strings.Count(html(t, clean), "<")
		run := load(t, name)
		poison(reflect.ValueOf(run).Elem())

		page := html(t, run)
		for _, bad := range []string{"<script", "<img", "</script"} {
			if strings.Contains(strings.ToLower(page), bad) {
				t.Errorf("%s: %s got through", name, bad)
			}
		}
		// Notes and tips that are empty in the clean run appear now, always as whole
		// elements of ours; a tag of the hostile text would be another name.
		for _, tag := range regexp.MustCompile(`</?([a-zA-Z0-9]+)`).FindAllStringSubmatch(page, -1) {
			if !ours[tag[1]] {
				t.Errorf("%s: tag %s is none of ours", name, tag[0])
				break
			}
		}
		if tags == 0 {
			t.Errorf("%s: the clean page has no tags", name)
		}

		md := rendered(t, func(w io.Writer) error { return render.Markdown(w, run) })
		outsideFences := withoutFences(md)
		if strings.Contains(outsideFences, "<") {
			t.Errorf("%s: Markdown lets a tag through", name)
		}
		if strings.Contains(outsideFences, "\n## head") {
			t.Errorf("%s: Markdown lets a line end through", name)
		}
		checkTables(t, outsideFences)

		term := rendered(t, func(w io.Writer) error { return render.Terminal(w, &run.Report) })
		for format, s := range map[string]string{"Markdown": md, "terminal": term} {
			if i := strings.IndexFunc(s, func(r rune) bool {
				return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
			}); i >= 0 {
				t.Errorf("%s: control character %q in %s", name, s[i], format)
			}
		}

		junit := rendered(t, func(w io.Writer) error { return render.JUnit(w, &run.Report) })
		wellFormed(t, junit)
		if !strings.Contains(junit, "&lt;script&gt;") {
			t.Errorf("%s: the hostile name is not in the JUnit file", name)
		}
	}
}

// ours are the elements that the template writes.
var ours = map[string]bool{
	"html": true, "head": true, "meta": true, "title": true, "link": true, "style": true, "body": true, "main": true, "header": true,
	"p": true, "h1": true, "h2": true, "span": true, "code": true, "dl": true, "div": true, "dt": true, "dd": true, "b": true, "small": true,
	"section": true, "ul": true, "li": true, "a": true, "nav": true, "table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true,
	"i": true, "figure": true, "figcaption": true, "svg": true, "rect": true, "path": true, "circle": true, "text": true, "details": true, "summary": true, "pre": true,
}

// withoutFences drops fenced blocks, whose content no reader interprets.
func withoutFences(md string) string {
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(md) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(trimmed, "```"):
			fence = strings.TrimSuffix(trimmed, "text")
		case fence == "":
			out.WriteString(line)
		case trimmed == fence:
			fence = ""
		}
	}
	if fence != "" {
		return "a fence never ended <"
	}
	return out.String()
}

var cellEnd = regexp.MustCompile(`(^|[^\\])(\\\\)*\|`)

// checkTables wants the same number of cells in every row of a table.
func checkTables(t *testing.T, md string) {
	t.Helper()
	columns := 0
	for line := range strings.Lines(md) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := len(cellEnd.FindAllString(line, -1))
		if columns != 0 && n != columns {
			t.Errorf("a row has %d cells, its table %d: %s", n, columns, line)
		}
		columns = n
	}
}

func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("not well-formed: %v", err)
			return
		}
	}
}

var drawing = regexp.MustCompile(`(?s)<svg .*?</svg>`)

func TestDrawings(t *testing.T) {
	t.Parallel()
	one := []result.Second{{Second: 0, Offered: 1}}
	zero := result.Report{Verdict: result.VerdictAborted, Started: time.Unix(0, 0)}
	ladder := func(tps ...float64) []result.Step {
		var s []result.Step
		for _, v := range tps {
			s = append(s, result.Step{Name: fmt.Sprint(v), TargetTPS: v, SubmitResp: result.SubmitResp{Latency: result.Latency{N: 400, P50: new(v), P95: new(0.0)}}})
		}
		return s
	}
	at := time.Unix(-100, 0)
	late := time.Unix(1000, 0)
	runs := map[string]*result.Run{
		"pass": load(t, "pass"), "violated": load(t, "violated"),
		"nothing":    {Report: zero},
		"one second": {Report: zero, Series: one},
		"one message a year": {Report: zero, Series: []result.Second{
			{Second: -1 << 40, Accepted: math.MaxInt64, P50: new(1e300)}, {Second: 1 << 40, P99: new(-5.0)},
		}},
		"equal rungs": {Report: result.Report{Verdict: result.VerdictAborted, Steps: ladder(5, 5, 5)}},
		"tiny rungs":  {Report: result.Report{Verdict: result.VerdictAborted, Steps: ladder(0, 1e-9, 2e-9), Knee: &result.Knee{SustainedTPS: new(9.0), SaturatedTPS: new(1.0)}}},
		"faults outside": {Series: one, Report: result.Report{Verdict: result.VerdictAborted, Started: time.Unix(0, 0), Faults: []result.Fault{
			{ID: "before", At: &at}, {ID: "after", At: &late}, {ID: "never"},
		}}},
		"empty gate":   {Report: result.Report{Verdict: result.VerdictAborted, Gate: []result.GateMetric{{Metric: "m", Status: result.StatusUnknown}, {Metric: "z", Status: result.StatusOK, Baseline: []float64{0}, Candidate: []float64{1}}}}},
		"empty stages": {Report: result.Report{Verdict: result.VerdictAborted, Stages: []result.Stage{{Name: "a"}, {Name: "b", Latency: result.NewLatency(1, 0, 0, 0)}}}},
	}
	for name, run := range runs {
		page := html(t, run)
		for _, svg := range drawing.FindAllString(page, -1) {
			wellFormed(t, svg)
			if m := regexp.MustCompile(`[ "](NaN|[+-]?Inf)`).FindString(svg); m != "" {
				t.Errorf("%s: coordinate %s in a drawing", name, m)
			}
			if m := regexp.MustCompile(`(width|height|r)="-`).FindString(svg); m != "" {
				t.Errorf("%s: negative %s in a drawing", name, m)
			}
		}
	}
	if n := len(drawing.FindAllString(html(t, runs["violated"]), -1)); n != 7 {
		t.Errorf("%d drawings of the ladder, want 7", n)
	}
}

// TestLongRunStaysSmall: half an hour is pooled, and its one bad second survives.
func TestLongRunStaysSmall(t *testing.T) {
	t.Parallel()
	var series []result.Second
	for i := range 3600 {
		s := result.Second{Second: int64(i), Offered: 100, Accepted: 100, P50: new(10.0), P95: new(20.0)}
		if i == 1777 {
			s.P95 = new(4321.0)
		}
		series = append(series, s)
	}
	page := html(t, &result.Run{Report: result.Report{Verdict: result.VerdictPass}, Series: series})
	if !strings.Contains(page, "P95: 4,321") {
		t.Error("the worst second disappeared")
	}
	if !strings.Contains(page, "Each point is 15 s") {
		t.Error("the page does not say that seconds were pooled")
	}
	if len(page) > 250_000 {
		t.Errorf("the page has %d octets", len(page))
	}
}

// TestDirIsPure: what is written depends on the directory alone, and leaves the
// files it reads as they were.
func TestDirIsPure(t *testing.T) {
	t.Parallel()
	for _, name := range examples() {
		var first map[string]string
		for range 2 {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
				t.Fatal(err)
			}
			before := files(t, dir)
			if _, err := render.Dir(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := render.Dir(dir); err != nil {
				t.Fatal(err)
			}
			after := files(t, dir)
			for f, content := range before {
				if after[f] != content {
					t.Errorf("%s: rendering changed %s", name, f)
				}
			}
			for _, f := range []string{result.HTMLFile, result.MarkdownFile, result.JUnitFile} {
				if after[f] == "" {
					t.Errorf("%s: %s was not written", name, f)
				}
			}
			if len(after) != len(before)+3 {
				t.Errorf("%s: %d files after, %d before", name, len(after), len(before))
			}
			if first == nil {
				first = after
			} else if !reflect.DeepEqual(first, after) {
				t.Errorf("%s: two copies of the directory give different pages", name)
			}
		}
	}
}

func TestDirWithoutReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := render.Dir(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the report is missing", err)
	}
	if n := len(files(t, dir)); n != 0 {
		t.Errorf("%d files were written for no report", n)
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m[e.Name()] = string(b)
	}
	return m
}

// TestJUnitCounts: violated fails, not examined is an error, not applicable is skipped.
func TestJUnitCounts(t *testing.T) {
	t.Parallel()
	r := result.Report{
		Scenario: "s", Verdict: result.VerdictViolated,
		Identities: []result.Identity{{ID: "a", Status: result.StatusOK}, {ID: "b", Status: result.StatusViolated}, {ID: "c", Status: result.StatusNotApplicable}},
		Checks:     []result.Check{{ID: "d", Status: result.StatusUnknown}},
		SLO:        []result.SLO{{Metric: "e", OK: true}, {Metric: "f"}, {Metric: "g", Value: new(1.0)}},
		Faults:     []result.Fault{{ID: "h", Injected: true, Recovered: true}, {ID: "i", Injected: true}},
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	if err := xml.Unmarshal([]byte(rendered(t, func(w io.Writer) error { return render.JUnit(w, &r) })), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 10 || got.Failures != 4 || got.Errors != 2 || got.Skipped != 1 {
		t.Errorf("%+v, want 10 tests, 4 failures, 2 errors, 1 skipped", got)
	}
}

// TestWriteErrors: a full disk is reported by every renderer.
func TestWriteErrors(t *testing.T) {
	t.Parallel()
	run := load(t, "violated")
	for name, f := range map[string]func(io.Writer) error{
		"html":     func(w io.Writer) error { return render.HTML(w, run) },
		"markdown": func(w io.Writer) error { return render.Markdown(w, run) },
		"junit":    func(w io.Writer) error { return render.JUnit(w, &run.Report) },
		"terminal": func(w io.Writer) error { return render.Terminal(w, &run.Report) },
	} {
		if err := f(full{}); !errors.Is(err, errFull) {
			t.Errorf("%s: error %v, want %v", name, err, errFull)
		}
	}
}

type full struct{}

var errFull = errors.New("disk full")

func (full) Write([]byte) (int, error) { return 0, errFull }
