package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// funcID tells one function value from another.
type funcID unsafe.Pointer

func idOf(f Migration) funcID {
	// A function value is a pointer to its closure: the same for every use of
	// a named function, another for every closure made. reflect's pointer is
	// the code's, shared by closures that captured different things.
	return *(*funcID)(unsafe.Pointer(&f)) //nolint:gosec // see above
}

// template is a migrated database that tests' databases are copied from.
type template struct {
	name    string
	migrate Migration // keeps the closure, and so its id, alive
}

// Migrated registers the migration behind DB. Call it once, in TestMain.
func Migrated(migrate Migration) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.migrate = migrate
}

// DB returns the URL of a database of the test's own, a copy of a template
// that the registered migration has made once in this binary. It is dropped,
// with the sessions in it, at the end of the test.
func DB(tb testing.TB) string {
	tb.Helper()
	shared.mu.Lock()
	migrate := shared.migrate
	shared.mu.Unlock()
	if migrate == nil {
		tb.Fatal("testenv: no migration; TestMain must call testenv.Migrated before testenv.Main")
	}
	return DBWith(tb, migrate)
}

// DBWith is DB with a migration of its own; nil gives an empty database. The
// template is made once per function value, so pass a named function, or the
// same variable, rather than a closure made on the spot.
func DBWith(tb testing.TB, migrate Migration) string {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	s := shared.start(tb)
	ctx, cancel := context.WithTimeout(tb.Context(), stepLimit)
	defer cancel()
	from := ""
	if migrate != nil {
		tpl, err := shared.template(ctx, migrate)
		if err != nil {
			tb.Fatalf("testenv: %v", err)
		}
		from = tpl.name
	}
	name := databaseName()
	url, err := s.CreateDatabase(ctx, name, from)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepLimit) // tb's is over by now
		defer cancel()
		if err := s.DropDatabase(ctx, name); err != nil {
			tb.Errorf("testenv: %v", err)
		}
	})
	if err := setZone(ctx, url); err != nil {
		tb.Fatalf("testenv: zone: %v", err)
	}
	return url
}

// template is called with the lock held.
func (e *env) template(ctx context.Context, migrate Migration) (*template, error) {
	id := idOf(migrate)
	if tpl := e.templates[id]; tpl != nil {
		return tpl, nil
	}
	if name := os.Getenv(envTemplate); name != "" && e.migrate != nil && id == idOf(e.migrate) {
		return &template{name, migrate}, nil
	}
	tpl := &template{name: databaseName(), migrate: migrate}
	url, err := e.stack.CreateDatabase(ctx, tpl.name, "")
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, url); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate: %w", err), e.stack.DropDatabase(ctx, tpl.name))
	}
	if err := e.stack.SealDatabase(ctx, tpl.name); err != nil {
		return nil, err
	}
	e.templates[id] = tpl
	return tpl, nil
}

// closeStack is called with the lock held. Templates are dropped because a
// server given by URL stays.
func (e *env) closeStack() error {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	var errs []error
	for _, tpl := range e.templates {
		errs = append(errs, e.stack.DropDatabase(ctx, tpl.name))
	}
	clear(e.templates)
	errs = append(errs, e.stack.Close())
	e.stack = nil
	return errors.Join(errs...)
}

func databaseName() string { return "testenv_" + strings.ToLower(rand.Text()) }
