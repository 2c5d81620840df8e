package supplier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

const controlBytes = 16 << 10 // of a request of the control entry

// control is a setting of capacity-plan §3.2 that may change while its channel runs.
type control struct {
	name, column string
	of           func(*settings.Channel) *int
}

var controls = []control{
	{"desiredConnections", "desired_connections", func(c *settings.Channel) *int { return &c.DesiredConnections }},
	{"windowSize", "window_size", func(c *settings.Channel) *int { return &c.WindowSize }},
	{"connectionWarmupSeconds", "warmup_seconds", func(c *settings.Channel) *int { return &c.WarmupSeconds }},
	{"connectionDrainTimeoutSeconds", "drain_seconds", func(c *settings.Channel) *int { return &c.DrainSeconds }},
	{"submitResponseTimeoutSeconds", "response_seconds", func(c *settings.Channel) *int { return &c.ResponseSeconds }},
	{"connectionFailureCooldownSeconds", "cooldown_seconds", func(c *settings.Channel) *int { return &c.CooldownSeconds }},
}

// refusal is an answer of the control entry that changed nothing.
type refusal struct {
	Type   string           `json:"type"`
	Title  string           `json:"title"`
	Status int              `json:"status"`
	Code   string           `json:"code"`
	Detail string           `json:"detail"`
	Faults []settings.Fault `json:"faults,omitempty"`
}

func (r refusal) Error() string { return r.Code + ": " + r.Detail }

func refused(status int, code, detail string, faults ...settings.Fault) refusal {
	return refusal{"about:blank", http.StatusText(status), status, code, detail, faults}
}

// changed is the answer to a change: what is stored now, and the version of the settings that has it.
type changed struct {
	Channel  int32          `json:"channel"`
	Version  int64          `json:"version"`
	Settings map[string]int `json:"settings"`
}

// Control is the handler of /api/control/channels: what the channels of this process do, and the six settings of
// capacity-plan §3.2 changed while they run. It is the second of three layers that check them, behind the admin API and
// before the pools, and takes nothing that a pool would refuse. It asks for no token: its server does.
//
//	GET   /api/control/channels       all channels, as [Manager.Status]
//	GET   /api/control/channels/{id}  one
//	PATCH /api/control/channels/{id}  {"desiredConnections": 4, …}; what is left out stays
func (m *Manager) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/control/channels", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, m.Status())
	})
	mux.HandleFunc("GET /api/control/channels/{id}", func(w http.ResponseWriter, r *http.Request) {
		for _, s := range m.Status() {
			if label(s.Channel) == r.PathValue("id") {
				answer(w, http.StatusOK, s)
				return
			}
		}
		answer(w, http.StatusNotFound, refused(http.StatusNotFound, "not-found", "channel "+strconv.Quote(r.PathValue("id"))+" is not enabled, or there is none"))
	})
	mux.HandleFunc("PATCH /api/control/channels/{id}", func(w http.ResponseWriter, r *http.Request) {
		done, err := m.change(r.Context(), r)
		var no refusal
		switch {
		case err == nil:
			answer(w, http.StatusOK, done)
		case errors.As(err, &no):
			answer(w, no.Status, no)
		default:
			m.o.Log.Error("settings of a channel not changed", slog.String("channel", r.PathValue("id")), slog.Any("error", err))
			answer(w, http.StatusServiceUnavailable, refused(http.StatusServiceUnavailable, "busy", "the database did not answer; nothing is known to be changed"))
		}
	})
	return mux
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	if status >= http.StatusBadRequest {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller is gone
}

// wishes reads a request: settings by column.
func wishes(body io.Reader) (map[string]int, error) {
	d := json.NewDecoder(io.LimitReader(body, controlBytes))
	var raw map[string]json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, refused(http.StatusBadRequest, "body", "an object of settings: "+err.Error())
	}
	if d.More() {
		return nil, refused(http.StatusBadRequest, "body", "more than one object")
	}
	wanted := make(map[string]int)
	var odd []settings.Fault
	names := make([]string, 0, len(controls))
	for _, c := range controls {
		names = append(names, c.name)
		value, ok := raw[c.name]
		if !ok {
			continue
		}
		delete(raw, c.name)
		var n *int
		if err := json.Unmarshal(value, &n); err != nil || n == nil {
			odd = append(odd, settings.Fault{Field: c.name, Allowed: "must be a whole number, not " + string(value)})
			continue
		}
		wanted[c.column] = *n
	}
	for name := range raw {
		odd = append(odd, settings.Fault{Field: name, Allowed: "no setting that changes here; these do: " + strings.Join(names, " ")})
	}
	if len(odd) > 0 {
		return nil, refused(http.StatusUnprocessableEntity, "invalid", "settings that cannot be", odd...)
	}
	if len(wanted) == 0 {
		return nil, refused(http.StatusUnprocessableEntity, "invalid", "no setting named; these can be changed: "+strings.Join(names, " "))
	}
	return wanted, nil
}

// change checks and stores the settings that r asks for; the pools follow the settings.
func (m *Manager) change(ctx context.Context, r *http.Request) (done changed, err error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 32)
	if err != nil {
		return done, refused(http.StatusNotFound, "not-found", "channel "+strconv.Quote(r.PathValue("id"))+" is no number")
	}
	wanted, err := wishes(r.Body)
	if err != nil {
		return done, err
	}
	remote, _, _ := net.SplitHostPort(r.RemoteAddr) // for people; '' serves
	ctx, cancel := context.WithTimeout(ctx, m.o.Config.LeaseTime)
	defer cancel()
	err = store.Retry(ctx, m.o.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, store.ManageLock); err != nil {
			return err
		}
		ch, err := admit(ctx, tx, int32(id), wanted)
		if err != nil {
			return err
		}
		done = changed{Channel: ch.ID, Settings: make(map[string]int)}
		for _, c := range controls {
			done.Settings[c.name] = *c.of(ch)
		}
		return tx.QueryRow(ctx, store.SupplierControlWrite, ch.ID, ch.DesiredConnections, ch.WindowSize, ch.WarmupSeconds, ch.DrainSeconds, ch.ResponseSeconds,
			ch.CooldownSeconds, remote).Scan(&done.Version)
	})
	if err != nil {
		return done, fmt.Errorf("change channel %d: %w", id, err)
	}
	m.o.Log.Info("settings of a channel changed", slog.Int64("channel", id), slog.Any("settings", wanted), slog.String("remote", remote))
	if m.o.Nudge != nil {
		m.o.Nudge()
	}
	return done, nil
}

// admit is the channel as wanted, or the refusal with every reason.
func admit(ctx context.Context, tx pgx.Tx, id int32, wanted map[string]int) (*settings.Channel, error) {
	rows, err := tx.Query(ctx, store.SupplierControlRead, id)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[settings.Channel])
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, refused(http.StatusNotFound, "not-found", fmt.Sprintf("there is no channel %d", id))
	}
	snap := &settings.Snapshot{Channels: make(map[int32]*settings.Channel), Accounts: make(map[int32]*settings.SupplierAccount)}
	for _, ch := range list {
		snap.Channels[ch.ID] = ch
	}
	ch := *snap.Channels[id]
	if rows, err = tx.Query(ctx, store.SupplierControlAccount, ch.AccountID); err != nil {
		return nil, err
	}
	accounts, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[settings.SupplierAccount])
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		snap.Accounts[a.ID] = a
	}
	for _, c := range controls {
		if n, ok := wanted[c.column]; ok {
			*c.of(&ch) = n
		}
	}
	faults := snap.Admit(&ch)
	if len(faults) == 0 {
		return &ch, nil
	}
	for i := range faults {
		for _, c := range controls {
			if faults[i].Field == c.column {
				faults[i].Field = c.name
			}
		}
	}
	return nil, refused(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("channel %d stays as it is", id), faults...)
}
