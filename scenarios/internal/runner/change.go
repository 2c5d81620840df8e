package runner

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/scenarios/internal/spec"
)

// What the harness changes in the gateway's settings while it runs, as an operator
// would: the row, and the version that makes every process read it anew.

//go:embed sql/channel_set.sql
var channelSetSQL string

//go:embed sql/enterprise_set.sql
var enterpriseSetSQL string

//go:embed sql/settings_bump.sql
var settingsBumpSQL string

//go:embed sql/top_up.sql
var topUpSQL string

//go:embed sql/policy_limits.sql
var policyLimitsSQL string

//go:embed sql/policy_quota.sql
var policyQuotaSQL string

//go:embed sql/policy_modes.sql
var policyModesSQL string

//go:embed sql/policy_modes_set.sql
var policyModesSetSQL string

//go:embed sql/policy_signature.sql
var policySignatureSQL string

//go:embed sql/policy_signature_number.sql
var policySignatureNumberSQL string

//go:embed sql/policy_template.sql
var policyTemplateSQL string

//go:embed sql/policy_keyword.sql
var policyKeywordSQL string

//go:embed sql/policy_blacklist.sql
var policyBlacklistSQL string

//go:embed sql/waiting.sql
var waitingSQL string

// setting is what a channel is to run with now.
type setting struct {
	channel

	Enabled   bool
	Pool      spec.Pool
	RateLimit int
}

// initial are the settings that the scenario starts with.
func initial(s *spec.Scenario) []setting {
	list := make([]setting, 0, len(s.Carriers)*len(s.Suppliers.PerCarrier))
	for _, c := range channels(s) {
		x := setting{channel: c, Enabled: true, Pool: s.Suppliers.Pool(), RateLimit: s.Suppliers.RateLimit}
		only := s.Suppliers.Only[c.Name]
		if only.RateLimit != nil {
			x.RateLimit = *only.RateLimit
		}
		if only.Enabled != nil {
			x.Enabled = *only.Enabled
		}
		list = append(list, x)
	}
	return list
}

// effectivePool is the pool that a channel is to have in fact: none when disabled.
func (x *setting) effectivePool() spec.Pool {
	if !x.Enabled {
		return spec.Pool{}
	}
	return x.Pool
}

// change is a statement with its arguments.
type change struct {
	sql  string
	args []any
}

// apply makes changes in one transaction that raises the settings version, over a
// connection of its own: the run's may be in use by the load's counters.
func (r *run) apply(ctx context.Context, list ...change) error {
	conn, err := pgx.Connect(ctx, r.files.Postgres)
	if err != nil {
		return fmt.Errorf("change settings: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, c := range append(slices.Clone(list), change{sql: settingsBumpSQL}) {
			if _, err := tx.Exec(ctx, c.sql, c.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change settings: %w", err)
	}
	return nil
}

// switchTo gives channels other settings; what is to be is known before the change, so
// that nobody takes the change for a surprise.
func (r *run) switchTo(ctx context.Context, which []int, f func(*setting)) error {
	var list []change
	r.mu.Lock()
	for _, i := range which {
		x := &r.settings[i]
		f(x)
		list = append(list, change{channelSetSQL, []any{x.ID, x.Enabled, x.Pool.Connections, x.Pool.Window}})
	}
	r.mu.Unlock()
	return r.apply(ctx, list...)
}

// wanted is a copy of what the channels are to run with.
func (r *run) wanted() []setting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.settings)
}

var policyModes = map[string]int{"": -1, "off": 0, "required": 1, "match": 1, "force": 2}

// setPolicy writes what the scenario's section policy says, before the gateway starts.
func (r *run) setPolicy(ctx context.Context) error {
	p := &r.s.Policy
	var list []change
	add := func(sql string, args ...any) { list = append(list, change{sql, args}) }
	limit := func(n, byDefault int) int {
		switch {
		case n == 0:
			return byDefault
		case n < 0:
			return 0
		}
		return n
	}
	const perDay = 10 // the gateway's default
	for i := range r.s.Enterprises {
		id := int32(i + 1) // of enterprise and application
		add(policyLimitsSQL, id, limit(p.Minute, 0), limit(p.Hour, 0), limit(p.Day, perDay), p.Quota)
		add(policyModesSQL, id)
		add(policyModesSetSQL, id, policyModes[p.Signature], policyModes[p.Template])
		for _, text := range p.Signatures {
			add(policySignatureSQL, id, text)
		}
		for _, text := range p.Templates {
			add(policyTemplateSQL, id, text)
		}
	}
	add(policySignatureNumberSQL)
	for _, word := range p.Keywords {
		add(policyKeywordSQL, word)
	}
	for _, number := range p.Blacklist {
		var phone int64
		if _, err := fmt.Sscan(number, &phone); err != nil {
			return unfit("blacklist: %w", err)
		}
		add(policyBlacklistSQL, phone)
	}
	if err := r.apply(ctx, list...); err != nil {
		return unfit("policy: %w", err)
	}
	return nil
}

// enterprises lists the enterprises that a fault is about, as positions.
func (r *run) enterprises(id string) []int {
	var list []int
	for i, e := range r.s.Enterprises {
		if id == "" || e.ID == id {
			list = append(list, i)
		}
	}
	return list
}
