package settings

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
)

// loadPolicy reads the lists of policy. Rows that cannot be used are in Faults; they match nothing.
func (s *Snapshot) loadPolicy(ctx context.Context, tx pgx.Tx) error {
	var l policy.Lists
	for _, read := range []func() error{
		func() (err error) {
			l.Limits, err = values[policy.Limits](ctx, tx, "policy limits", store.SettingsPolicyLimits)
			return err
		},
		func() (err error) {
			l.Modes, err = values[policy.Modes](ctx, tx, "policy modes", store.SettingsPolicyModes)
			return err
		},
		func() (err error) {
			l.Signatures, err = values[policy.Signature](ctx, tx, "signatures", store.SettingsPolicySignature)
			return err
		},
		func() (err error) {
			l.Numbers, err = values[policy.SignatureNumber](ctx, tx, "signature numbers", store.SettingsPolicyNumber)
			return err
		},
		func() (err error) {
			l.Templates, err = values[policy.Template](ctx, tx, "templates", store.SettingsPolicyTemplate)
			return err
		},
		func() (err error) {
			l.Keywords, err = values[policy.Keyword](ctx, tx, "keywords", store.SettingsPolicyKeyword)
			return err
		},
		func() (err error) {
			l.Stats, err = values[policy.Stat](ctx, tx, "stats", store.SettingsPolicyStat)
			return err
		},
		func() (err error) {
			l.Demands, err = values[policy.Demand](ctx, tx, "signature demands", store.SettingsPolicyDemand)
			return err
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	s.Policy, s.Faults = policy.New(l)
	return nil
}

func values[T any](ctx context.Context, tx pgx.Tx, what, query string) ([]T, error) {
	list, err := rows[T](ctx, tx, what, query)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(list))
	for i, x := range list {
		all[i] = *x
	}
	return all, nil
}

// Stat is what a failed receipt of an application says for a reason.
func (s *Snapshot) Stat(app int32, r message.Reason) string { return s.Policy.Stat(app, r) }

// Group is the channels that an application uses for a carrier; nil when it has no route there.
func (s *Snapshot) Group(app int32, carrier routing.Carrier) *routing.Group {
	a := s.Applications[app]
	if a == nil {
		return nil
	}
	return s.Groups[a.Routes[carrier]]
}

// Route picks the channel of a message: of its application's group for the carrier, one that takes its signature and is not
// in tried. Without one the reason says why: SIGNATURE when a channel was left but for the signature, else ROUTE.
func (s *Snapshot) Route(app int32, carrier routing.Carrier, signature string, key uint64, tried []int32) (routing.Candidate, message.Reason) {
	group := s.Group(app, carrier)
	if group == nil {
		return routing.Candidate{}, message.ReasonRoute
	}
	closed := s.Policy.Closed(s.Applications[app].EnterpriseID, signature)
	not := tried
	if len(closed) > 0 {
		not = slices.Concat(tried, closed)
	}
	if c, ok := group.Pick(key, not); ok {
		return c, message.NoReason
	}
	if len(closed) > 0 {
		if _, ok := group.Pick(key, tried); ok {
			return routing.Candidate{}, message.ReasonSignature
		}
	}
	return routing.Candidate{}, message.ReasonRoute
}

// Serving is the enabled channels that could serve a number of an application, in the order of the group. override is the
// number's ported carrier where the caller knows it, else Unknown.
func (s *Snapshot) Serving(app int32, number uint64, override routing.Carrier) []routing.Candidate {
	group := s.Group(app, s.Table.CarrierOf(number, override))
	if group == nil {
		return nil
	}
	return group.Enabled()
}
