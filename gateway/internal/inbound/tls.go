package inbound

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is the server's, read again when one of its files changes, so that a renewed one needs no restart. While the
// files cannot be read or do not fit together (a renewal replaces them one after the other), the last good one is used.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time
	failing  bool
}

// serverTLS is the configuration of the TLS listener; the files must be good now.
func serverTLS(cert, key string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}, nil
}

func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	switch {
	case err != nil && !c.failing:
		c.log.Error("TLS certificate not read again, the last one stays in use", slog.Any("error", err))
	case err == nil && c.failing:
		c.log.Info("TLS certificate read again")
	}
	c.failing = err != nil
	return c.current
}

// load reads the files if they are newer or older than those in use.
func (c *certificate) load() error {
	var modified [2]time.Time
	for i, name := range [...]string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("inbound: TLS: %w", err)
		}
		modified[i] = info.ModTime()
	}
	if c.current != nil && modified == c.modified {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("inbound: TLS: %s, %s: %w", c.cert, c.key, err)
	}
	c.current, c.modified = &pair, modified
	return nil
}
