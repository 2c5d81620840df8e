package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"cmppgateway/reports/result"
)

// Terminal writes the summary a person waits for: verdict, both rates, P50, P95 and
// P99, objectives, identities and the checks that do not hold. Plain text, no colour.
func Terminal(w io.Writer, r *result.Report) error {
	b := bufio.NewWriter(w)
	m := buildBanner(r)
	fmt.Fprintf(b, "%s %s  %s  (verdict %s, exit %d)\n", m.Symbol, strings.ToUpper(m.Word), printable(m.Scenario, false), m.Verdict, m.ExitCode)
	fmt.Fprintf(b, "  %s\n  %s\n", printable(m.Reason, false), printable(m.Rates, false))

	if len(r.Steps) > 0 {
		t := latencyTable(r)
		dropColumn(&t, "note")
		terminalTable(b, "Latency, ms, from the intended start", t)
	}
	if len(r.SLO) > 0 {
		t := sloTable(r)
		dropColumn(&t, "interval within this run")
		terminalTable(b, "Objectives", t)
	}
	if len(r.Identities) > 0 {
		t := identities(r).Tables[0]
		dropColumn(&t, "witnesses")
		for _, r := range t.Rows {
			for i := range r.Cells {
				r.Cells[i].Sub = ""
			}
		}
		terminalTable(b, "Identities, in 1/10,000 yuan", t)
	}
	if n := len(r.Checks); n > 0 {
		fmt.Fprintf(b, "\nChecks: %d of %d hold\n", holding(r.Checks, func(x result.Check) bool { return x.OK }), n)
	}
	if f := failures(r); len(f) > 0 {
		fmt.Fprint(b, "\nWhat does not hold\n")
		for _, x := range f {
			fmt.Fprintf(b, "  ✗ %s %s: %s\n", x.Kind, printable(x.Name, false), printable(x.Detail, false))
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("render terminal: %w", err)
	}
	return nil
}

// dropColumn leaves out what is too wide for a terminal.
func dropColumn(t *table, name string) {
	for i, c := range t.Columns {
		if c.Name != name {
			continue
		}
		t.Columns = append(t.Columns[:i:i], t.Columns[i+1:]...)
		for j := range t.Rows {
			c := t.Rows[j].Cells
			t.Rows[j].Cells = append(c[:i:i], c[i+1:]...)
		}
		return
	}
}

func terminalTable(b *bufio.Writer, title string, t table) {
	grid := make([][]string, 0, len(t.Rows)+1)
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = c.Name
	}
	grid = append(grid, head)
	for _, r := range t.Rows {
		line := make([]string, len(r.Cells))
		for i, c := range r.Cells {
			line[i] = printable(cellText(c), false)
		}
		grid = append(grid, line)
	}
	width := make([]int, len(t.Columns))
	for _, line := range grid {
		for i, s := range line {
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, line := range grid {
		var out strings.Builder
		for i, s := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
			out.WriteString("  ")
			if t.Columns[i].Numeric {
				out.WriteString(pad + s)
			} else {
				out.WriteString(s + pad)
			}
		}
		fmt.Fprintln(b, strings.TrimRight(out.String(), " "))
	}
}
