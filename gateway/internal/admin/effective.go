package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/review"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Options of New.
type Options struct {
	Config   config.Config
	Version  string
	Roles    []string
	Node     *store.Node
	Pools    *store.Pools
	Redis    *redis.Client
	Settings *settings.Watcher
	Channels func() any     // runtime state of the channels; nil in a process without the edge role
	Review   *review.Review // decides about held messages; nil in a process without the core role
	Wake     *wake.Bus      // carries the nudge after a change of settings; nil = everybody polls
	Log      *slog.Logger
}

// New is the handler of /api/admin/ and /openapi.json.
func New(o Options) http.Handler {
	publish := func(string) {}
	if o.Wake != nil {
		publish = o.Wake.Publish
	}
	manager := manage.New(o.Pools.Admin, o.Node.IDs, func() { publish(wake.Settings) })
	s := newServer(&server{manager: manager, review: o.Review, publish: publish, token: o.Config.Admin.Token, log: o.Log})
	binary := sync.OnceValues(binarySum)
	s.mux.HandleFunc("GET /api/admin/effective", func(w http.ResponseWriter, r *http.Request) {
		// Without a configured token the listener is on loopback, and this is what a machine's own health looks like.
		if o.Config.Admin.Token != "" {
			if _, err := s.authenticate(r); err != nil {
				s.refuse(w, r, err)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o.effective(r.Context(), binary)) // the caller is gone
	})
	return s.mux
}

// Effective is the answer of GET /api/admin/effective. What could not be asked for is in Errors.
type Effective struct {
	Version  string                `json:"version"`
	PID      int                   `json:"pid"`
	SHA256   string                `json:"binarySha256"`
	Roles    []string              `json:"roles"`
	Node     int16                 `json:"node"`
	Epoch    int64                 `json:"epoch,string"`
	Clock    time.Time             `json:"clock"`
	Config   map[string]any        `json:"config"`
	Postgres map[string]Durability `json:"postgres"` // by pool
	Redis    map[string]string     `json:"redis"`
	Settings Settings              `json:"settings"`
	Channels any                   `json:"channels"`
	Errors   []string              `json:"errors"`
}

// Settings is the snapshot in use, secrets cut.
type Settings struct {
	Version      int64                      `json:"version,string"`
	Enterprises  []settings.Enterprise      `json:"enterprises"`
	Applications []settings.Application     `json:"applications"`
	Accounts     []settings.SupplierAccount `json:"supplierAccounts"`
	Channels     []settings.Channel         `json:"channels"`
	Groups       []*routing.Group           `json:"groups"`
	Routes       map[int32]map[string]int32 `json:"routes"`
}

// askTimeout bounds what is asked of PostgreSQL and Redis: the answer comes through their outages too.
const askTimeout = 2 * time.Second

func (o Options) effective(ctx context.Context, binary func() (string, error)) Effective {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	e := Effective{
		Version: o.Version, PID: os.Getpid(), Roles: o.Roles, Node: o.Node.Number, Epoch: o.Node.Epoch, Clock: time.Now().UTC(), Config: o.Config.Effective(),
		Postgres: make(map[string]Durability), Settings: show(o.Settings.Current()), Errors: []string{},
	}
	note := func(err error) {
		if err != nil {
			e.Errors = append(e.Errors, err.Error())
		}
	}
	var err error
	e.SHA256, err = binary()
	note(err)
	for _, n := range o.Pools.All() {
		d, err := Postgres(ctx, n.Pool)
		note(err)
		if err != nil {
			break // the others would only wait as long
		}
		e.Postgres[n.Name] = d
	}
	e.Redis, err = Redis(ctx, o.Redis)
	note(err)
	if o.Channels != nil {
		e.Channels = o.Channels()
	}
	return e
}

func show(s *settings.Snapshot) Settings {
	const cut = "xxxxx"
	v := Settings{Version: s.Version, Groups: ordered(s.Groups), Routes: make(map[int32]map[string]int32)}
	for _, id := range slices.Sorted(maps.Keys(s.Enterprises)) {
		v.Enterprises = append(v.Enterprises, s.Enterprises[id])
	}
	for _, a := range ordered(s.Applications) {
		shown := *a
		shown.Secret, shown.Routes = cut, nil
		v.Applications = append(v.Applications, shown)
		v.Routes[a.ID] = make(map[string]int32)
		for carrier, group := range a.Routes {
			v.Routes[a.ID][carrier.String()] = group
		}
	}
	for _, a := range ordered(s.Accounts) {
		shown := *a
		shown.Secret = cut
		v.Accounts = append(v.Accounts, shown)
	}
	for _, c := range ordered(s.Channels) {
		v.Channels = append(v.Channels, *c)
	}
	return v
}

// ordered is the values by ascending id.
func ordered[T any](m map[int32]*T) []*T {
	list := make([]*T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[id])
	}
	return list
}

// binarySum is the SHA-256 of the running program, whatever is at its path by now.
func binarySum() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("own program: %w", err)
	}
	defer f.Close() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("own program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
