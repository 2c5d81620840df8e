package manage

import (
	"context"
	"strconv"
	"strings"
)

// prefix is a rule's prefix; a pattern that is a plain prefix, as in ^1380028, is taken as that.
var prefix = form{
	name: "1..13 digits beginning with 1, or the same as a pattern anchored by ^",
	ok: func(s string) bool {
		s = plainPrefix(s)
		return s != "" && len(s) <= 13 && s[0] == '1' && onlyDigits(s)
	},
	norm: plainPrefix,
}

// plainPrefix drops what a pattern for a plain prefix has around its digits.
func plainPrefix(s string) string {
	s, anchored := strings.CutPrefix(s, "^")
	if anchored {
		s = strings.TrimSuffix(s, ".*")
	}
	return s
}

var prefixRules = &Resource{
	Name: "prefix-rules", Title: "prefix rule", Table: "prefix_rule", Key: []string{"prefix"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "prefix", Type: text{1, 20, prefix}, Required: true, Fixed: true, Doc: "comes before ported numbers and number segments; the longest counts"},
		{Name: "carrier", Type: carriers, Required: true},
		{Name: "until", Type: instant{}, Null: true, Doc: "the rule ends then; null = when it is removed"},
		note(), made("created_at"),
	},
}

// numberOverrides are ported numbers: looked up by each batch, never loaded.
var numberOverrides = &Resource{
	Name: "number-overrides", Title: "ported number", Table: "number_override", Key: []string{"phone"}, Silent: true,
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "phone", Type: phone{}, Required: true, Fixed: true},
		{Name: "carrier", Type: carriers, Required: true},
		{Name: "source", Type: numSources, ReadOnly: true},
		{Name: "learned_from", Column: "channel_id", Type: ref{to: "channels"}, ReadOnly: true, Doc: "channel whose supplier said that the number is not its own"},
		{Name: "at", Type: instant{}, ReadOnly: true, Volatile: true},
	},
	check: func(_ context.Context, _ *Change, _, columns map[string]any) (FaultsError, error) {
		if columns != nil {
			columns["source"], columns["channel_id"] = int64(3), nil
		}
		return nil, nil
	},
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// number is a stored whole number.
func number(v any) int64 {
	n, _ := whole(v)
	return n
}

// longID is an id of 63 bits, shown as text: JSON readers lose digits of such numbers.
type longID struct{}

func (longID) parse(v any) (any, string) {
	const allowed = "an id of up to 19 digits, as text"
	s, ok := v.(string)
	n, err := strconv.ParseInt(s, 10, 64)
	if !ok || err != nil || n < 1 {
		return nil, allowed
	}
	return n, ""
}

func (longID) show(stored any) any { return itoa(number(stored)) }

func (longID) Schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[0-9]{1,19}$"}
}
