package manage

import (
	"context"
	"crypto/rand"
	"fmt"

	"cmppgateway/gateway/internal/store"
)

const (
	idMax     = 1<<31 - 1
	moneyMax  = 1 << 53 // 1/10,000 yuan; exact in every JSON reader
	priceMax  = 1_000_000
	tpsMax    = 1_000_000
	nameMost  = 100
	noteMost  = 500
	secretMax = 100
)

func id() Field {
	return Field{Name: "id", Type: integer{1, idMax}, Fixed: true, Doc: "given by the gateway when left out"}
}

// rowID is an id that the database gives.
func rowID() Field {
	return Field{Name: "id", Type: integer{1, idMax}, ReadOnly: true}
}

func name() Field {
	return Field{Name: "name", Type: text{lo: 1, hi: nameMost}, Required: true, Unique: true}
}

func note() Field {
	return Field{Name: "note", Type: text{lo: 0, hi: noteMost}, Default: "", Doc: "for people"}
}

func made(column string) Field {
	return Field{Name: column, Type: instant{}, ReadOnly: true, Volatile: true}
}

func markDeleted(*Change) map[string]any { return map[string]any{"status": deleted} }

var enterprises = &Resource{
	Name: "enterprises", Title: "enterprise", Table: "enterprise", Key: []string{"id"}, NextID: true, Read: Everyone, Make: Admin, Edit: Operator | Admin, Remove: Admin,
	Filter: []string{"status", "name"},
	Fields: []Field{
		id(), name(),
		{Name: "status", Type: statuses, Default: "active", Doc: "disabled ends the sessions of all its applications within a second"},
		{Name: "max_tps", Type: integer{0, tpsMax}, Default: 0, Doc: "messages a second over all its applications, per process; beyond: result 8; 0 = no limit"},
	},
	deleted: markDeleted,
	done: func(ctx context.Context, c *Change, before, after map[string]any) error {
		if before != nil {
			return nil
		}
		_, err := c.tx.Exec(ctx, store.LedgerAccountCreate, number(after["id"]), int64(0))
		return err
	},
}

var enterprisePolicies = &Resource{
	Name: "enterprise-policies", Title: "policy of an enterprise", Table: "enterprise_policy", Key: []string{"enterprise"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises"}, Required: true, Fixed: true},
		{Name: "freq_minute", Type: integer{0, 1000}, Default: 0, Doc: "messages to one number that may pass in any minute; 0 = no limit"},
		{Name: "freq_hour", Type: integer{0, 1000}, Default: 0, Doc: "in any hour; 0 = no limit"},
		{Name: "freq_day", Type: integer{0, 1000}, Default: 10, Doc: "in any 24 hours; 0 = no limit"},
		{Name: "daily_quota", Type: integer{0, moneyMax}, Default: 0, Doc: "messages a day of Asia/Shanghai; 0 = no limit"},
	},
}

var applications = &Resource{
	Name: "applications", Title: "application", Table: "application", Key: []string{"id"}, NextID: true, Read: Everyone, Make: Admin, Edit: Operator | Admin, Remove: Admin,
	Filter: []string{"enterprise", "status", "sp_id"},
	Fields: []Field{
		id(),
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises"}, Required: true, Fixed: true},
		{Name: "name", Type: text{lo: 1, hi: nameMost}, Required: true},
		{Name: "sp_id", Type: text{1, 6, ascii}, Required: true, Unique: true, Doc: "Source_Addr of the customer's CONNECT"},
		{Name: "secret", Type: text{1, secretMax, ascii}, Secret: true, Fixed: true, Doc: "made up when left out; shown once, in the answer; changed by the action secret"},
		{Name: "status", Type: statuses, Default: "active", Doc: "disabled ends its sessions within a second"},
		{Name: "version", Type: versions, Default: "any", Doc: "pins the CMPP version"},
		{Name: "price", Type: integer{0, priceMax}, Required: true, Fixed: true, Hidden: true, Doc: "first price, 1/10,000 yuan a unit; see the prices of the application"},
		{Name: "unit_rule", Type: units, Default: "cn-70-67", Fixed: true, Hidden: true, Doc: "first rule of units; see prices"},
		{Name: "charge_on", Type: charges, Default: "accept", Fixed: true, Hidden: true, Doc: "first rule; see prices"},
		{Name: "refund_on", Type: refunds, Default: "final_failed_receipt", Fixed: true, Hidden: true, Doc: "first rule; see prices"},
		{Name: "lane", Type: lanes, Default: "notification", Doc: "class of its messages: order of dispatch and age limit"},
		{Name: "max_connections", Type: integer{1, 64}, Default: 4},
		{Name: "window", Column: "window_size", Type: integer{1, 256}, Default: 32, Doc: "SUBMITs without an answer, per connection"},
		{Name: "max_tps", Type: integer{0, tpsMax}, Default: 0, Doc: "messages a second over all its connections, per process; beyond: result 8; 0 = no limit"},
		{Name: "link_tps", Type: integer{0, tpsMax}, Default: 0, Doc: "messages a second per connection; 0 = no limit"},
		{Name: "vendor_status", Type: boolean{}, Default: false, Doc: "CONNECT_RESP 55, 56, 57 where 5 is the standard's"},
		{Name: "access_number", Type: text{0, 21, digits}, Default: "", Doc: "prefix its Src_Id must have; empty = any"},
		{Name: "resend_failed", Type: integer{0, 2}, Default: 0, Doc: "more submits after a failed receipt; the customer pays once"},
	},
	deleted: markDeleted,
	check:   checkApplication,
	adopt:   adoptApplication,
	done:    applicationWritten,
}

// checkApplication makes up the secret of a new application.
func checkApplication(_ context.Context, _ *Change, before, columns map[string]any) (FaultsError, error) {
	if before == nil && columns["secret"] == nil {
		columns["secret"] = NewSecret()
	}
	return nil, nil
}

// adoptApplication gives an application that exists the price, billing rules and secret of a file.
func adoptApplication(ctx context.Context, c *Change, old, columns map[string]any) error {
	id := int32(number(old["id"]))
	var price, charge, refund, unit int64
	if err := c.tx.QueryRow(ctx, store.ManageTerms, id).Scan(&price, &charge, &refund, &unit); err != nil {
		return fmt.Errorf("price of application %d: %w", id, err)
	}
	if price != number(columns["price"]) || charge != number(columns["charge_on"]) || refund != number(columns["refund_on"]) || unit != number(columns["unit_rule"]) {
		given := Doc{"price": columns["price"]}
		for _, name := range []string{"charge_on", "refund_on", "unit_rule"} {
			given[name] = applicationField(name).show(columns[name])
		}
		if _, err := c.SetPrice(ctx, id, given); err != nil {
			return err
		}
	}
	if secret, ok := columns["secret"].(string); ok && secret != old["secret"] {
		_, err := c.RotateSecret(ctx, id, Doc{"secret": secret})
		return err
	}
	return nil
}

func applicationField(name string) Type {
	return map[string]Type{"charge_on": charges, "refund_on": refunds, "unit_rule": units}[name]
}

// NewSecret is 80 random bits as text that people can read out.
func NewSecret() string { return rand.Text()[:16] }

// applicationWritten begins the price history of a new application and gives it a policy that demands signatures.
func applicationWritten(ctx context.Context, c *Change, before, after map[string]any) error {
	if before != nil {
		return nil
	}
	if _, err := c.tx.Exec(ctx, store.ManagePriceFirst, number(after["id"])); err != nil {
		return err
	}
	if c.Bare {
		return nil
	}
	_, _, err := c.Create(ctx, applicationPolicies, Doc{"application": number(after["id"])})
	return err
}

var applicationPolicies = &Resource{
	Name: "application-policies", Title: "policy of an application", Table: "application_policy", Key: []string{"application"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Admin,
	Fields: []Field{
		{Name: "application", Column: "app_id", Type: ref{to: "applications"}, Required: true, Fixed: true},
		{Name: "signature_mode", Type: signModes, Default: "required", Doc: "required: exactly one 【…】 that was approved"},
		{Name: "signature_place", Type: signPlaces, Default: "front"},
		{Name: "template_mode", Type: templModes, Default: "off", Doc: "match: notes the template that fits; force: refuses what fits none"},
		{Name: "daily_quota", Type: integer{0, moneyMax}, Default: 0, Doc: "messages a day of Asia/Shanghai; 0 = no limit"},
		{Name: "duplicate_seconds", Type: integer{0, 86400}, Default: 0, Doc: "refuses the same content to the same number again within; 0 = off"},
		{Name: "quiet_from", Type: integer{0, 1439}, Default: 0, Doc: "minute of the day, Asia/Shanghai, from which marketing is refused; equal to quiet_until = never"},
		{Name: "quiet_until", Type: integer{0, 1439}, Default: 0},
	},
}

var applicationStats = &Resource{
	Name: "application-stats", Title: "Stat of a refusal", Table: "application_stat", Key: []string{"application", "reason"}, Filter: []string{"application"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "application", Column: "app_id", Type: ref{to: "applications"}, Required: true, Fixed: true},
		{Name: "reason", Type: reasons, Required: true, Fixed: true},
		{Name: "stat", Type: text{1, 7, ascii}, Required: true, Doc: "what the customer's failed receipt carries instead of the usual Stat"},
	},
}

var applicationRoutes = &Resource{
	Name: "application-routes", Title: "route", Table: "application_route", Key: []string{"application", "carrier"}, Filter: []string{"application", "group"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "application", Column: "app_id", Type: ref{to: "applications"}, Required: true, Fixed: true},
		{Name: "carrier", Type: carriers, Required: true, Fixed: true},
		{Name: "group", Column: "group_id", Type: ref{to: "groups"}, Required: true},
	},
}

var applicationAddresses = &Resource{
	Name: "application-addresses", Title: "allowed network", Table: "application_address", Key: []string{"application", "network"}, Filter: []string{"application"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "application", Column: "app_id", Type: ref{to: "applications"}, Required: true, Fixed: true},
		{Name: "network", Type: text{2, 50, cidr}, Required: true, Fixed: true, Doc: "an application without one logs in from anywhere"},
		note(),
	},
}

var platformLimits = &Resource{
	Name: "platform-limits", Title: "limit of the platform", Table: "platform_limit", Key: []string{"scope"}, Read: Everyone, Edit: Operator | Admin,
	Fields: []Field{
		{Name: "scope", Column: "only_row", Type: only{"platform"}, ReadOnly: true},
		{Name: "max_tps", Type: integer{0, tpsMax}, Doc: "messages a second of all customers, per process; beyond: result 8; 0 = no limit"},
		{Name: "backlog_max", Type: integer{0, 100_000_000}, Doc: "inbox rows and commands together; beyond: result 8; 0 = no limit"},
	},
}

// only is the key of a table of one row.
type only struct{ word string }

func (t only) parse(v any) (any, string) {
	if v == t.word {
		return true, ""
	}
	return nil, t.word
}

func (t only) show(any) any { return t.word }

func (t only) Schema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{t.word}}
}
