package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const superuser = "postgres"

// postgresDefaults are the settings of a server this package starts, in a
// process or a container. Durability is as in production: a kill -9 test on a
// server that does not sync proves nothing.
func postgresDefaults() map[string]string {
	return map[string]string{
		"max_connections":    "200",
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",
		"timezone":           "UTC",
		"log_min_messages":   "warning",
	}
}

// StartPostgres starts a private PostgreSQL server as a process, for a test
// that kills, freezes or restarts it. Of the options it uses Dir,
// PostgresConfig and Log. The caller calls Close.
func StartPostgres(ctx context.Context, o Options) (*Process, error) {
	o = o.withDefaults()
	initdb, err := lookup("initdb")
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	postgres, err := lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	h, err := newHome(o.Dir, o.Log)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	data := filepath.Join(h.dir, "data")
	password := rand.Text()
	if err := initPostgres(ctx, h, initdb, data, password); err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), h.close())
	}
	// No socket file and no shared memory outside the data directory: what is
	// left after a kill goes with the directory.
	settings := postgresDefaults()
	maps.Copy(settings, map[string]string{
		"listen_addresses":           loopback,
		"unix_socket_directories":    "",
		"dynamic_shared_memory_type": "mmap",
	})
	maps.Copy(settings, o.PostgresConfig)
	p := &Process{
		name: "postgres",
		home: h,
		log:  o.Log,
		stop: stopSignals{fast: syscall.SIGINT, immediate: syscall.SIGQUIT},
		url:  func(addr string) string { return postgresURL(addr, password) },
		build: func(port int) *exec.Cmd {
			args := append([]string{"-D", data, "-p", strconv.Itoa(port)}, postgresArgs(settings)...)
			return h.command(postgres, args...)
		},
		check: func(ctx context.Context, addr string, _ int) error { // the password proves that it is ours
			return pingPostgres(ctx, postgresURL(addr, password))
		},
	}
	if err := p.first(ctx, FreePort); err != nil {
		return nil, errors.Join(err, p.Close()) //nolint:contextcheck // ctx may be over, the server must go
	}
	return p, nil
}

func initPostgres(ctx context.Context, h *home, initdb, data, password string) error {
	secret := filepath.Join(h.dir, "password")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		return err
	}
	if h.cred != nil {
		if err := os.Chown(secret, int(h.cred.Uid), int(h.cred.Gid)); err != nil {
			return err
		}
	}
	if err := h.run(ctx, initdb, "-D", data, "-U", superuser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"); err != nil {
		return err
	}
	return os.Remove(secret)
}

// postgresArgs renders settings as command-line options, in name order.
func postgresArgs(settings map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

func postgresURL(addr, password string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password), Host: addr,
		Path: "/postgres", RawQuery: "sslmode=disable",
	}
	return u.String()
}

func pingPostgres(ctx context.Context, url string) error {
	return withPostgres(ctx, url, func(c *pgx.Conn) error { return c.Ping(ctx) })
}

// withPostgres runs f on a connection of its own.
func withPostgres(ctx context.Context, url string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(ctx))
}

// CreateDatabase makes a database and returns its URL. A template that is not
// empty is copied; nobody may be connected to it meanwhile.
func (s *Stack) CreateDatabase(ctx context.Context, name, template string) (string, error) {
	sql := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template != "" {
		sql += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	if err := s.exec(ctx, sql); err != nil {
		return "", fmt.Errorf("create database: %w", err)
	}
	return databaseURL(s.postgresURL, name)
}

// DropDatabase removes a database and ends the sessions in it; one that does
// not exist is no error.
func (s *Stack) DropDatabase(ctx context.Context, name string) error {
	sql := "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
	if err := s.exec(ctx, sql); err != nil {
		return fmt.Errorf("drop database: %w", err)
	}
	return nil
}

// SealDatabase refuses new sessions in a database that serves as a template,
// so that neither a client nor autovacuum can stand in the way of a copy.
func (s *Stack) SealDatabase(ctx context.Context, name string) error {
	sql := "ALTER DATABASE " + pgx.Identifier{name}.Sanitize() + " ALLOW_CONNECTIONS false"
	if err := s.exec(ctx, sql); err != nil {
		return fmt.Errorf("seal database: %w", err)
	}
	return nil
}

func (s *Stack) exec(ctx context.Context, sql string) error {
	return withPostgres(ctx, s.postgresURL, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, sql)
		return err
	})
}

// databaseURL is base with another database.
func databaseURL(base, name string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the PostgreSQL address is not a URL") // its text may hold a password
	}
	u.Path = "/" + name
	return u.String(), nil
}

// postgresDurability reads the settings that decide what a commit is worth.
func postgresDurability(ctx context.Context, url string, into map[string]string) error {
	return withPostgres(ctx, url, func(c *pgx.Conn) error {
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			var value string
			if err := c.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
				return err
			}
			into[name] = value
		}
		return nil
	})
}
