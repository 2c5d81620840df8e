package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"cmppgateway/reports/result"
)

// Markdown writes the same report for a build log: GitHub tables, no drawings.
func Markdown(w io.Writer, run *result.Run) error {
	p := build(run)
	b := bufio.NewWriter(w)
	m := p.Banner
	fmt.Fprintf(b, "# %s %s: %s\n\n", m.Symbol, m.Word, markdown(m.Scenario))
	fmt.Fprintf(b, "**%s**\n\n", markdown(m.Reason))
	fmt.Fprintf(b, "%s\n\n", markdown(capital(m.Rates)))
	facts := make([]string, len(m.Facts))
	for i, f := range m.Facts {
		facts[i] = f.Name + " " + f.Value
	}
	fmt.Fprintf(b, "Verdict `%s`; %s.\n", m.Verdict, markdown(joined(facts)))
	if len(p.Failures) > 0 {
		fmt.Fprint(b, "\n## What does not hold\n\n")
		for _, f := range p.Failures {
			fmt.Fprintf(b, "- %s **%s**: %s\n", f.Kind, markdown(f.Name), markdown(f.Detail))
		}
	}
	for _, s := range p.Sections {
		fmt.Fprintf(b, "\n## %s\n", markdown(s.Title))
		for _, n := range s.Notes {
			fmt.Fprintf(b, "\n%s\n", markdown(n))
		}
		for _, t := range s.Tables {
			markdownTable(b, t)
		}
		for _, t := range s.Texts {
			fence := fenceFor(t.Body)
			fmt.Fprintf(b, "\n%s:\n\n%stext\n%s\n%s\n", markdown(t.Caption), fence, strings.TrimRight(printable(t.Body, true), "\n"), fence)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("render markdown: %w", err)
	}
	return nil
}

func markdownTable(b *bufio.Writer, t table) {
	if t.Caption != "" {
		fmt.Fprintf(b, "\n%s\n", markdown(t.Caption))
	}
	fmt.Fprint(b, "\n|")
	for _, c := range t.Columns {
		fmt.Fprintf(b, " %s |", markdown(c.Name))
	}
	fmt.Fprint(b, "\n|")
	for _, c := range t.Columns {
		if c.Numeric {
			fmt.Fprint(b, "---:|")
		} else {
			fmt.Fprint(b, "---|")
		}
	}
	fmt.Fprintln(b)
	for _, r := range t.Rows {
		fmt.Fprint(b, "|")
		for _, c := range r.Cells {
			fmt.Fprintf(b, " %s |", markdown(cellText(c)))
		}
		fmt.Fprintln(b)
	}
}

// cellText is a cell where there is only text to tell things apart.
func cellText(c cell) string {
	s := c.Text
	if c.Status != "" {
		s = symbol(c.Status) + " " + s
	}
	if c.Sub != "" {
		s += " (" + c.Sub + ")"
	}
	return s
}

// markdown keeps a string of a run from acting as markup.
func markdown(s string) string {
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, `\`, `\\`,
	).Replace(printable(s, false))
}

// printable replaces control characters, which could hide or move text; lines says
// whether line ends and tabs are kept.
func printable(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// fenceFor is a fence longer than any run of backquotes inside the text.
func fenceFor(s string) string {
	longest, n := 2, 0
	for _, r := range s {
		if r == '`' {
			n++
			longest = max(longest, n)
		} else {
			n = 0
		}
	}
	return strings.Repeat("`", longest+1)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
