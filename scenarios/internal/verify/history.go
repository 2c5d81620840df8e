package verify

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cmppgateway/reports/result"
)

// historyVersion is raised when what is stored changes its meaning.
const historyVersion = 2

// Save writes the witness into a run directory.
func Save(dir string, w *Witness) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	enc := gob.NewEncoder(z)
	err := enc.Encode(historyVersion)
	if err == nil {
		err = enc.Encode(w)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return result.WriteFile(filepath.Join(dir, result.HistoryFile), b.Bytes())
}

// Load reads the witness of a run directory.
func Load(dir string) (*Witness, error) {
	f, err := os.Open(filepath.Join(dir, result.HistoryFile))
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	return decode(f)
}

func decode(r io.Reader) (*Witness, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	dec := gob.NewDecoder(z)
	var version int
	if err := dec.Decode(&version); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	if version != historyVersion {
		return nil, fmt.Errorf("read history: version %d, this program reads %d", version, historyVersion)
	}
	var w Witness
	if err := dec.Decode(&w); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return &w, nil
}
