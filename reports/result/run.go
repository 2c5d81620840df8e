package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names of the files of a run directory.
const (
	ReportFile     = "report.json"
	HTMLFile       = "report.html"
	MarkdownFile   = "report.md"
	JUnitFile      = "junit.xml"
	SeriesFile     = "series.csv"
	HistoryFile    = "history.bin"
	ScenarioFile   = "scenario.resolved.yaml"
	EnvFile        = "env.json"
	GatewayLogFile = "gateway.log"
	StatementFile  = "statement.csv" // the supplier's daily statement
	ReproFile      = "repro.sh"
)

// How much of the gateway's log a run carries into its report.
const (
	logTailBytes = 32 << 10
	logTailLines = 60
)

// maxText bounds the text files read whole.
const maxText = 1 << 20

// Run is what a report is rendered from: the content of one run directory.
type Run struct {
	Report     Report
	Series     []Second // empty when there is no series.csv
	Scenario   string   // scenario.resolved.yaml; empty when absent
	Repro      string   // repro.sh; empty when absent
	GatewayLog string   // last whole lines of gateway.log; empty when absent
}

// Save seals the report and writes report.json and series.csv into dir, which is
// made when missing. Each file is replaced as a whole. Percentiles that are NaN or
// infinite are refused: use nil and a reason.
func Save(dir string, r *Report, series []Second) error {
	r.Seal()
	if err := r.Validate(); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	b, err := Marshal(r)
	if err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	var csv bytes.Buffer
	if err := WriteSeries(&csv, series); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	if err := WriteFile(filepath.Join(dir, ReportFile), b); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	if err := WriteFile(filepath.Join(dir, SeriesFile), csv.Bytes()); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	return nil
}

// Load reads a run directory. report.json must be there and valid; the other
// files are optional.
func Load(dir string) (*Run, error) {
	b, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil {
		return nil, fmt.Errorf("load run: %w", err)
	}
	rep, err := Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("load run %s: %w", dir, err)
	}
	run := &Run{Report: *rep}
	if run.Series, err = loadSeries(filepath.Join(dir, SeriesFile)); err != nil {
		return nil, fmt.Errorf("load run: %w", err)
	}
	if run.Scenario, err = text(filepath.Join(dir, ScenarioFile)); err != nil {
		return nil, fmt.Errorf("load run: %w", err)
	}
	if run.Repro, err = text(filepath.Join(dir, ReproFile)); err != nil {
		return nil, fmt.Errorf("load run: %w", err)
	}
	if run.GatewayLog, err = tail(filepath.Join(dir, GatewayLogFile)); err != nil {
		return nil, fmt.Errorf("load run: %w", err)
	}
	return run, nil
}

// Marshal is the text of report.json.
func Marshal(r *Report) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return b.Bytes(), nil
}

// Unmarshal reads report.json and validates it. Fields it does not know are
// ignored, so that a newer writer of the same schema can still be read.
func Unmarshal(b []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return &r, nil
}

// WriteFile replaces a file of a run as a whole: a reader sees the old or the new.
func WriteFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func loadSeries(path string) ([]Second, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	return ReadSeries(f)
}

// text reads at most maxText octets of a file that may be absent.
func text(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // opened for reading
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	return strings.ToValidUTF8(string(b), "�"), err
}

// tail reads the last whole lines of a log that may be absent.
func tail(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // opened for reading
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, st.Size()-logTailBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, from, logTailBytes))
	if err != nil {
		return "", err
	}
	if from > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	lines := strings.SplitAfter(strings.ToValidUTF8(string(b), "�"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines[max(0, len(lines)-logTailLines):], ""), nil
}
