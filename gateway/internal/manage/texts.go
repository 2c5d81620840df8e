package manage

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"cmppgateway/gateway/internal/policy"
)

// decided notes when a status was decided.
func decided(_ context.Context, _ *Change, before, columns map[string]any) (FaultsError, error) {
	status, given := columns["status"]
	if !given || before == nil && status == int64(1) {
		return nil, nil
	}
	columns["decided_at"] = time.Now().UTC().Format(time.RFC3339Nano)
	if status == int64(1) {
		columns["decided_at"] = nil
	}
	return nil, nil
}

// characters is up to n characters, without surrounding blanks.
func characters(n int, without string) form {
	named := fmt.Sprintf("1..%d characters without blanks around them", n)
	if without != "" {
		named += " and without " + without
	}
	return form{name: named, ok: func(s string) bool {
		return utf8.RuneCountInString(s) <= n && strings.TrimSpace(s) == s && !strings.ContainsAny(s, without)
	}}
}

var signatures = &Resource{
	Name: "signatures", Title: "signature", Table: "signature", Key: []string{"id"}, Filter: []string{"enterprise", "status", "text"}, natural: []string{"enterprise", "text"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		rowID(),
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises"}, Required: true, Fixed: true},
		{Name: "text", Type: text{1, 128, characters(32, "【】")}, Required: true, Fixed: true, Doc: "without 【】"},
		{Name: "status", Type: decisions, Default: "pending"},
		note(), made("created_at"), made("decided_at"),
	},
	check: decided,
}

var signatureNumbers = &Resource{
	Name: "signature-numbers", Title: "signature for an access number", Table: "signature_number", Key: []string{"signature", "access_number"}, Filter: []string{"signature", "access_number"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "signature", Column: "signature_id", Type: ref{to: "signatures"}, Required: true, Fixed: true},
		{Name: "access_number", Type: text{1, 21, digits}, Required: true, Fixed: true},
		{Name: "status", Type: decisions, Default: "pending", Doc: "whether the supplier took the signature for this number"},
	},
}

var templates = &Resource{
	Name: "templates", Title: "template", Table: "template", Key: []string{"id"}, Filter: []string{"enterprise", "application", "status"}, natural: []string{"enterprise", "application", "text"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		rowID(),
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises"}, Required: true, Fixed: true},
		{Name: "application", Column: "app_id", Type: ref{to: "applications", zero: "all of the enterprise"}, Default: 0, Fixed: true},
		{Name: "text", Type: text{1, 8000, characters(2000, "")}, Required: true, Doc: "without the signature; variables {name}, {name:max}, {name:min-max}, {name:d4-6} digits, {name:w1-10} letters and digits"},
		{Name: "status", Type: decisions, Default: "pending"},
		note(), made("created_at"), made("decided_at"),
	},
	check: decided,
}

var keywords = &Resource{
	Name: "keywords", Title: "keyword", Table: "keyword", Key: []string{"id"}, Filter: []string{"enterprise", "action", "word"}, natural: []string{"enterprise", "word"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		rowID(),
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises", zero: "all"}, Default: 0, Fixed: true},
		{Name: "word", Type: text{1, 256, characters(64, "")}, Required: true, Fixed: true},
		{Name: "action", Type: actions, Default: "reject", Doc: "hold: the message waits for a decision, its money frozen"},
		{Name: "enabled", Type: boolean{}, Default: true},
		note(),
	},
}

// optOutWords are the texts by which phones opt out of marketing. They are read for every batch of uplinks.
var optOutWords = &Resource{
	Name: "opt-out-words", Title: "opt-out word", Table: "opt_out_word", Key: []string{"word"}, Silent: true,
	Read: Everyone, Make: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "word", Type: text{1, 128, optOutWord}, Required: true, Fixed: true, Doc: "the whole text, compared without width, case, spaces, punctuation and symbols"},
		made("created_at"),
	},
}

const optOutWordMost = 32 // characters, as the table has it

var optOutWord = form{
	name: "1..32 letters, digits or other characters of a script",
	ok: func(s string) bool {
		n := utf8.RuneCountInString(policy.Normalize(s))
		return n >= 1 && n <= optOutWordMost
	},
	norm: policy.Normalize,
}

// optOuts are the blacklists: for everybody, for an enterprise, for a signature of it.
var optOuts = &Resource{
	Name: "opt-outs", Title: "opt-out", Table: "opt_out", Key: []string{"phone", "enterprise", "signature"}, Filter: []string{"phone", "enterprise", "signature"}, Silent: true,
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "phone", Type: phone{}, Required: true, Fixed: true},
		{Name: "enterprise", Column: "enterprise_id", Type: ref{to: "enterprises", zero: "everybody"}, Default: 0, Fixed: true},
		{Name: "signature", Type: text{0, 128, characters(32, "【】")}, Default: "", Fixed: true, Doc: "empty = every signature"},
		{Name: "marketing_only", Type: boolean{}, Default: false},
		{Name: "source", Type: optSources, ReadOnly: true},
		{Name: "uplink_event_id", Type: longID{}, ReadOnly: true, Doc: "the uplink that asked for it"},
		made("created_at"),
		{Name: "created_by", Type: text{0, nameMost, form{}}, ReadOnly: true},
		{Name: "reversed_at", Type: instant{}, ReadOnly: true, Doc: "removed rows block no more and stay for the record"},
		{Name: "reversed_by", Type: text{0, nameMost, form{}}, ReadOnly: true},
		note(),
	},
	check: func(_ context.Context, c *Change, before, columns map[string]any) (FaultsError, error) {
		if before == nil {
			columns["created_by"] = c.actor.Name
		}
		return nil, nil
	},
	deleted: func(c *Change) map[string]any {
		return map[string]any{"reversed_at": time.Now().UTC().Format(time.RFC3339Nano), "reversed_by": c.actor.Name}
	},
	gone:   func(row map[string]any) bool { return row["reversed_at"] != nil },
	revive: map[string]any{"reversed_at": nil, "reversed_by": "", "source": 1, "uplink_event_id": nil},
}
