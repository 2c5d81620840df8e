package manage

import "slices"

// Rows that the gateway writes and people read.

var prices = &Resource{
	Name: "prices", Title: "price", Table: "price_history", Key: []string{"application", "version"}, Filter: []string{"application"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "application", Column: "app_id", Type: ref{to: "applications"}, ReadOnly: true},
		{Name: "version", Column: "price_version", Type: integer{1, idMax}, ReadOnly: true},
		{Name: "price", Type: integer{0, priceMax}, ReadOnly: true, Doc: "1/10,000 yuan a unit"},
		{Name: "charge_on", Type: charges, ReadOnly: true, Null: true, Doc: "null = as the application began"},
		{Name: "refund_on", Type: refunds, ReadOnly: true, Null: true},
		{Name: "unit_rule", Type: units, ReadOnly: true, Null: true},
		{Name: "effective_from", Column: "since", Type: instant{}, ReadOnly: true},
	},
}

var accounts = &Resource{
	Name: "accounts", Title: "account", Table: "account", Key: []string{"enterprise"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "enterprise", Column: "id", Type: ref{to: "enterprises"}, ReadOnly: true},
		{Name: "available", Type: integer{-moneyMax, moneyMax}, ReadOnly: true, Volatile: true, Doc: "1/10,000 yuan"},
		{Name: "credit", Type: integer{0, moneyMax}, Doc: "how far below 0 available may go, 1/10,000 yuan"},
	},
}

var entries = &Resource{
	Name: "entries", Title: "entry of the ledger", Table: "account_entry", Key: []string{"id"}, Newest: true, Filter: []string{"enterprise", "kind"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "id", Type: longID{}, ReadOnly: true},
		{Name: "enterprise", Column: "account_id", Type: ref{to: "enterprises"}, ReadOnly: true},
		{Name: "kind", Type: entryKinds, ReadOnly: true},
		{Name: "messages", Column: "n", Type: integer{0, idMax}, ReadOnly: true},
		{Name: "amount", Type: integer{0, moneyMax}, ReadOnly: true, Doc: "1/10,000 yuan"},
		{Name: "balance", Type: integer{-moneyMax, moneyMax}, ReadOnly: true, Null: true, Doc: "available after it; null for a charge, which moves nothing"},
		{Name: "at", Type: instant{}, ReadOnly: true},
		{Name: "idempotency_key", Column: "idem", Type: text{0, 200, form{}}, ReadOnly: true, Null: true},
	},
}

var reviewHolds = &Resource{
	Name: "review-holds", Title: "message held for review", Table: "review_hold", Key: []string{"message"}, Filter: []string{"enterprise", "application", "keyword"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "message", Column: "message_id", Type: longID{}, ReadOnly: true},
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises"}, ReadOnly: true},
		{Name: "application", Column: "app_id", Type: ref{to: "applications"}, ReadOnly: true},
		{Name: "keyword", Column: "keyword_id", Type: ref{to: "keywords"}, ReadOnly: true},
		{Name: "held_at", Type: instant{}, ReadOnly: true},
		{Name: "expires_at", Type: instant{}, ReadOnly: true, Doc: "without a decision until then it is rejected"},
	},
}

var deadLetters = &Resource{
	Name: "dead-letters", Title: "dead letter", Table: "dead_letter", Key: []string{"id"}, Filter: []string{"kind"}, Read: Everyone, Silent: true, Newest: true,
	Fields: []Field{
		{Name: "id", Type: longID{}, ReadOnly: true},
		{Name: "kind", Type: text{0, 100, form{}}, ReadOnly: true, Doc: "delivery: a receipt or uplink whose customer did not take it; these can be replayed"},
		{Name: "reason", Type: text{0, 1 << 20, form{}}, ReadOnly: true},
		{Name: "at", Type: instant{}, ReadOnly: true},
		{Name: "supplier", Column: "account", Type: integer{0, idMax}, ReadOnly: true, Doc: "account it came from; 0 = not told"},
		{Name: "replayed_at", Type: instant{}, ReadOnly: true, Null: true},
	},
}

// uplinks are the messages from phones; their texts are shown by `gateway uplink list` alone.
var uplinks = &Resource{
	Name: "uplinks", Title: "uplink", Table: "uplink", Key: []string{"event_id"}, Read: Everyone, Silent: true, Newest: true,
	Fields: []Field{
		{Name: "event_id", Type: longID{}, ReadOnly: true},
		{Name: "at", Type: instant{}, ReadOnly: true},
		{Name: "supplier", Column: "supplier_account", Type: integer{0, idMax}, ReadOnly: true, Doc: "account it came from"},
		{Name: "phone", Type: text{0, 100, form{}}, ReadOnly: true, Doc: "as the supplier wrote it"},
		{Name: "number", Column: "dest", Type: text{0, 100, form{}}, ReadOnly: true, Doc: "it was sent to"},
		{Name: "outcome", Type: uplinkOutcomes, ReadOnly: true},
		{Name: "application", Column: "app_id", Type: integer{0, idMax}, ReadOnly: true, Doc: "whose it is; 0 = not known"},
		{Name: "set", Column: "set_id", Type: longID{}, ReadOnly: true, Doc: "the same in all segments of a long one; 0 = it is none"},
		{Name: "opt_out", Type: boolean{}, ReadOnly: true, Doc: "its text asks for no more messages"},
	},
}

var unmatchedUplinks = &Resource{
	Name: "unmatched-uplinks", Title: "uplink that is nobody's", Table: "uplink_unmatched", Key: []string{"event_id"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "event_id", Type: longID{}, ReadOnly: true},
		{Name: "at", Type: instant{}, ReadOnly: true},
		{Name: "supplier", Column: "supplier_account", Type: integer{0, idMax}, ReadOnly: true, Doc: "account it came from"},
		{Name: "phone", Type: text{0, 100, form{}}, ReadOnly: true},
		{Name: "number", Column: "dest", Type: text{0, 100, form{}}, ReadOnly: true, Doc: "it was sent to"},
		{Name: "reason", Type: uplinkReasons, ReadOnly: true},
		{Name: "opt_out", Type: boolean{}, ReadOnly: true, Doc: "its text asks for no more messages: somebody should see to it"},
	},
}

// callbackModes say how events of a type travel; a type without a row travels in batches.
var callbackModes = &Resource{
	Name: "callback-modes", Title: "way of events", Table: "callback_mode", Key: []string{"event_type"}, Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "event_type", Type: text{1, 40, eventType}, Required: true, Fixed: true},
		{Name: "mode", Type: eventModes, Required: true},
	},
}

var eventType = form{
	name: "one of submit_segment_result, submit_result, receipt_intake, uplink, dead_letter",
	ok: func(s string) bool {
		return slices.Contains([]string{"submit_segment_result", "submit_result", "receipt_intake", "uplink", "dead_letter"}, s)
	},
}

var loginEvents = &Resource{
	Name: "login-events", Title: "login or refusal", Table: "login_event", Key: []string{"sp_id", "address", "status", "cause"}, Filter: []string{"sp_id", "address", "application"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "sp_id", Type: text{0, 100, form{}}, ReadOnly: true, Doc: "Source_Addr as it came"},
		{Name: "address", Type: text{0, 50, form{}}, ReadOnly: true},
		{Name: "status", Type: integer{-1, 255}, ReadOnly: true, Doc: "of CONNECT_RESP, 0 is a login; -1: closed without an answer"},
		{Name: "cause", Type: text{0, 500, form{}}, ReadOnly: true},
		{Name: "count", Column: "n", Type: integer{0, moneyMax}, ReadOnly: true},
		{Name: "first_at", Type: instant{}, ReadOnly: true},
		{Name: "last_at", Type: instant{}, ReadOnly: true},
		{Name: "application", Column: "app_id", Type: integer{0, idMax}, ReadOnly: true, Doc: "0 = no such account"},
		{Name: "version", Type: integer{0, 255}, ReadOnly: true, Doc: "octet of the CONNECT"},
		{Name: "timestamp", Column: "stamp", Type: text{0, 20, form{}}, ReadOnly: true, Doc: "of the CONNECT, MMDDHHMMSS"},
		{Name: "detail", Type: text{0, 1000, form{}}, ReadOnly: true},
	},
}

var tokens = &Resource{
	Name: "tokens", Title: "token", Table: "admin_token", Key: []string{"id"}, Read: Admin, Silent: true,
	Fields: []Field{
		{Name: "id", Type: integer{1, idMax}, ReadOnly: true},
		{Name: "name", Type: text{1, nameMost, form{}}, ReadOnly: true},
		{Name: "role", Type: enum{onlyShown: RoleWords}, ReadOnly: true},
		made("created_at"),
		{Name: "expires_at", Type: instant{}, ReadOnly: true, Null: true},
		{Name: "revoked_at", Type: instant{}, ReadOnly: true, Null: true},
		{Name: "used_at", Type: instant{}, ReadOnly: true, Null: true, Volatile: true},
	},
}

var audit = &Resource{
	Name: "audit", Title: "entry of the audit", Table: "admin_audit", Key: []string{"id"}, Newest: true, Filter: []string{"resource", "key", "actor", "token"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "id", Type: longID{}, ReadOnly: true},
		{Name: "at", Type: instant{}, ReadOnly: true},
		{Name: "token", Column: "token_id", Type: integer{0, idMax}, ReadOnly: true, Doc: "0 = the configured token, or a command"},
		{Name: "actor", Type: text{0, nameMost, form{}}, ReadOnly: true},
		{Name: "role", Type: text{0, 50, form{}}, ReadOnly: true},
		{Name: "remote", Type: text{0, 100, form{}}, ReadOnly: true},
		{Name: "action", Type: text{0, 50, form{}}, ReadOnly: true},
		{Name: "resource", Type: text{0, 50, form{}}, ReadOnly: true},
		{Name: "key", Type: text{0, 300, form{}}, ReadOnly: true},
		{Name: "idempotency_key", Column: "idem", Type: text{0, 200, form{}}, ReadOnly: true},
		{Name: "before", Type: anything{}, ReadOnly: true, Null: true},
		{Name: "after", Type: anything{}, ReadOnly: true, Null: true},
	},
}

// anything is a document as it was stored.
type anything struct{}

func (anything) parse(any) (any, string) { return nil, "left out" }
func (anything) show(stored any) any     { return stored }
func (anything) Schema() map[string]any  { return map[string]any{"type": "object"} }

// declared are all resources, those first that others refer to: the order of a seed file.
var declared = []*Resource{
	enterprises, enterprisePolicies, supplierAccounts, channels, groups, groupMembers, applications, applicationPolicies, applicationStats, applicationRoutes,
	applicationAddresses, platformLimits, signatures, signatureNumbers, templates, keywords, optOuts, optOutWords, prefixRules, numberOverrides, resultClasses, dispatchStops, callbackModes,
	prices, accounts, entries, reviewHolds, channelBreakers, deadLetters, uplinks, unmatchedUplinks, loginEvents, tokens, audit,
}

// Resources are all resources, those first that others refer to.
func Resources() []*Resource { return declared }
