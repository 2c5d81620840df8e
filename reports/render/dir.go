package render

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"cmppgateway/reports/result"
)

// Dir renders report.html, report.md and junit.xml beside the report.json of a run
// directory and returns what it loaded. Files there are replaced as a whole.
func Dir(dir string) (*result.Run, error) {
	run, err := result.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", dir, err)
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{result.HTMLFile, func(w io.Writer) error { return HTML(w, run) }},
		{result.MarkdownFile, func(w io.Writer) error { return Markdown(w, run) }},
		{result.JUnitFile, func(w io.Writer) error { return JUnit(w, &run.Report) }},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return nil, fmt.Errorf("render %s: %w", dir, err)
		}
		if err := result.WriteFile(filepath.Join(dir, f.name), b.Bytes()); err != nil {
			return nil, fmt.Errorf("render %s: %w", dir, err)
		}
	}
	return run, nil
}
