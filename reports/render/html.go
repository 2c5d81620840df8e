package render

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"unicode/utf8"

	"cmppgateway/reports/result"
)

//go:embed page.html.tmpl page.css
var assets embed.FS

// longText is the length in characters above which a cell may wrap.
const longText = 40

// HTML writes the self-contained page: no script, no font, no other request.
func HTML(w io.Writer, run *result.Run) error {
	css, err := assets.ReadFile("page.css")
	if err != nil {
		return fmt.Errorf("render html: %w", err)
	}
	t, err := template.New("page.html.tmpl").Funcs(template.FuncMap{
		"px":     px,
		"symbol": symbol,
		"long":   func(s string) bool { return utf8.RuneCountInString(s) > longText },
		"right":  func(cols []column, i int) bool { return i < len(cols) && cols[i].Numeric },
		"headed": func(cols []column) bool {
			return slices.ContainsFunc(cols, func(c column) bool { return c.Name != "" })
		},
		// The style sheet is a file of this package, never text of a run.
		"css": func() template.CSS { return template.CSS(css) }, //nolint:gosec // embedded at build time
	}).ParseFS(assets, "page.html.tmpl")
	if err != nil {
		return fmt.Errorf("render html: %w", err)
	}
	if err := t.Execute(w, build(run)); err != nil {
		return fmt.Errorf("render html: %w", err)
	}
	return nil
}

// symbol is the mark beside a status, so that colour is never the only sign.
func symbol(s result.Status) string {
	switch s {
	case result.StatusOK:
		return "✓"
	case result.StatusViolated:
		return "✗"
	case result.StatusUnknown:
		return "?"
	case result.StatusNotApplicable:
		return "–"
	}
	return ""
}
