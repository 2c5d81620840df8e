package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cmppgateway/reports/result"
)

func TestRender(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("render", "testdata", "pass"))); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"render", dir}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	page := filepath.Join(dir, result.HTMLFile)
	if last := lines[len(lines)-1]; last != page {
		t.Errorf("the last line is %q, want the path %q", last, page)
	}
	if !strings.Contains(lines[0], "PASSED") {
		t.Errorf("the first line is %q, want the verdict", lines[0])
	}
	if _, err := os.Stat(page); err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"--help"}, &out); !errors.Is(err, errHelp) || !strings.Contains(out.String(), "render") {
		t.Errorf("help: error %v, text %q", err, out.String())
	}
	if err := run([]string{"render", t.TempDir()}, &out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory without a report: error %v", err)
	}
	for _, args := range [][]string{nil, {"render"}, {"render", filepath.Join(t.TempDir(), "none")}, {"show", "."}} {
		if err := run(args, &out); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
