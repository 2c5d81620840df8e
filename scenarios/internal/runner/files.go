package runner

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cmppgateway/reports/result"
)

// makeDir makes runs/<name>/<utc timestamp>/ and points `latest` at it.
func makeDir(root, name string, now time.Time) (string, error) {
	parent := filepath.Join(root, name)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	stamp := now.UTC().Format("20060102T150405Z")
	dir := filepath.Join(parent, stamp)
	err := os.Mkdir(dir, 0o750)
	for i := 2; errors.Is(err, fs.ErrExist); i++ {
		dir = filepath.Join(parent, fmt.Sprintf("%s-%d", stamp, i))
		err = os.Mkdir(dir, 0o750)
	}
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	// The link is replaced as a whole: whoever follows it finds a run.
	link := filepath.Join(parent, fmt.Sprintf(".latest.%d", os.Getpid()))
	if err := os.Symlink(filepath.Base(dir), link); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	if err := os.Rename(link, filepath.Join(parent, "latest")); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	return dir, nil
}

// fileSum is the SHA-256 of a file.
func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func textSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// stale names a source file of the gateway that is newer than the binary, when the
// tree the binary belongs to is there; empty when there is none.
func stale(binary string) (string, error) {
	bin, err := os.Stat(binary)
	if err != nil {
		return "", err
	}
	root := moduleRoot(filepath.Dir(binary))
	if root == "" {
		return "", nil
	}
	newer := ""
	err = filepath.WalkDir(filepath.Join(root, "gateway"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || newer != "" {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		source := strings.HasSuffix(path, ".sql") || strings.HasSuffix(path, ".lua") || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		if !source {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.ModTime().After(bin.ModTime()) {
			newer, err = filepath.Rel(root, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // no tree beside the binary
	}
	return newer, err
}

// moduleRoot is the directory at or above dir with this module's go.mod.
func moduleRoot(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module cmppgateway\n") {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// slowBuild names what makes a binary unfit for latency figures: the race detector
// or coverage.
func slowBuild(binary string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return ""
	}
	for _, s := range info.Settings {
		if (s.Key == "-race" || s.Key == "-cover") && s.Value == "true" {
			return strings.TrimPrefix(s.Key, "-")
		}
	}
	return ""
}

// environmentFile is env.json: the environment with what the report has no place for.
type environmentFile struct {
	Environment result.Environment `json:"environment"`
	Harness     result.Harness     `json:"harness"`
	// HotShare is the share of updates that touched no index, by table.
	HotShare map[string]float64 `json:"hot_share"`
	// OldestSnapshot is the most transactions any session's snapshot was behind.
	OldestSnapshot int64 `json:"oldest_backend_xmin_age"`
	// Missed is how many readings of the sampler failed.
	Missed int `json:"sampler_missed"`
	// Costly are the kinds of statement that cost most.
	Costly []statement `json:"costly_statements"`
	// Ledger is what `gateway ledger verify` said.
	Ledger string `json:"ledger_verify"`
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return result.WriteFile(path, append(b, '\n'))
}

// writeRepro writes the script that repeats a run from its own resolved scenario.
func writeRepro(dir string, r *result.Report) error {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Repeats this run. Start it in the module's root.\n")
	fmt.Fprintf(&b, "# seed %d\n# scenario sha256 %s\n# gateway sha256 %s\nset -eu\n", r.Seed, r.Harness.ScenarioSHA256, r.Environment.Gateway.SHA256)
	b.WriteString("here=$(cd \"$(dirname \"$0\")\" && pwd)\n")
	fmt.Fprintf(&b, "make build\nexec bin/scenarios run %s --file \"$here/%s\"\n", r.Scenario, result.ScenarioFile)
	path := filepath.Join(dir, result.ReproFile)
	if err := result.WriteFile(path, []byte(b.String())); err != nil {
		return err
	}
	return os.Chmod(path, 0o750) //nolint:gosec // a script is run
}
