package manage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// undeclared are the columns that nobody sets by hand.
var undeclared = map[string][]string{
	"application": {"price_version"}, // given by prices
}

// Every declaration fits the schema: its columns exist, all columns of what people edit are declared, what the table demands is required or has a default, keys are the
// table's, references lead somewhere, and defaults are allowed values.
func TestDeclarationsFitTheSchema(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	names := map[string]bool{}
	for _, r := range manage.Resources() {
		if names[r.Name] {
			t.Errorf("%s is declared twice", r.Name)
		}
		names[r.Name] = true
		needed := map[string]bool{} // by column: it must be given
		rows, err := conn.Query(t.Context(), `SELECT attname, attnotnull AND NOT atthasdef AND attidentity = '' FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, r.Table)
		if err != nil {
			t.Fatal(err)
		}
		var column string
		var must bool
		if _, err := pgx.ForEachRow(rows, []any{&column, &must}, func() error { needed[column] = must; return nil }); err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		var key []string
		err = conn.QueryRow(t.Context(), `SELECT array_agg(attname::text ORDER BY attname) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE indrelid = $1::text::regclass AND indisprimary`, r.Table).Scan(&key)
		if err != nil {
			t.Fatal(err)
		}
		declared := []string{}
		for i := range r.Fields {
			f := &r.Fields[i]
			c := f.Name
			if f.Column != "" {
				c = f.Column
			}
			if _, ok := needed[c]; !ok {
				t.Errorf("%s.%s: no column %s.%s", r.Name, f.Name, r.Table, c)
			}
			if needed[c] && r.Make != 0 && !f.ReadOnly && !f.Required && f.Default == nil && f.Name != "id" && f.Name != "secret" {
				t.Errorf("%s.%s: the table demands it, so it must be required or have a default", r.Name, f.Name)
			}
			delete(needed, c)
			if slices.Contains(r.Key, f.Name) {
				declared = append(declared, c)
			}
			if f.Default != nil {
				if faults := r.Faults(manage.Doc{f.Name: f.Default}); slices.ContainsFunc(faults, func(w manage.Fault) bool { return w.Field == f.Name }) {
					t.Errorf("%s.%s: its default %v is none of its values", r.Name, f.Name, f.Default)
				}
			}
			if to := f.RefersTo(); to != "" && manage.ByName(to) == nil {
				t.Errorf("%s.%s refers to %s, which is not declared", r.Name, f.Name, to)
			}
		}
		if slices.Sort(declared); !slices.Equal(declared, key) {
			t.Errorf("%s: key %v, the table's is %v", r.Name, declared, key)
		}
		for c := range needed {
			if r.Make != 0 && !slices.Contains(undeclared[r.Table], c) {
				t.Errorf("%s: column %s.%s is not declared: people could not set it", r.Name, r.Table, c)
			}
		}
		for _, f := range r.Filter {
			if r.Field(f) == nil {
				t.Errorf("%s: filter %s is no field", r.Name, f)
			}
		}
	}
}

// Values at the edges of their ranges are taken, those beyond are refused with the range, and nothing of another kind passes.
func TestRanges(t *testing.T) {
	t.Parallel()
	channels, apps, addresses := manage.ByName("channels"), manage.ByName("applications"), manage.ByName("application-addresses")
	for _, c := range []struct {
		r     *manage.Resource
		field string
		v     any
		want  string // "" = taken
	}{
		{channels, "connections", 1, ""},
		{channels, "connections", 8, ""},
		{channels, "connections", 0, "1..8"},
		{channels, "connections", 9, "1..8"},
		{channels, "window", 64, ""},
		{channels, "window", 0, "1..64"},
		{channels, "window", 65, "1..64"},
		{channels, "connections", json.Number("2.5"), "1..8"},
		{channels, "connections", json.Number("1e400"), "1..8"},
		{channels, "connections", "2", "1..8"},
		{channels, "connections", true, "1..8"},
		{channels, "connections", nil, "1..8"},
		{channels, "enabled", "yes", "true or false"},
		{channels, "carrier", "mobil", "one of mobile, unicom, telecom, broadnet"},
		{channels, "access_number", "106900x", "1..21 octets, digits"},
		{channels, "name", "a\x00b", "1..100 octets"},
		{channels, "name", "\xff", "1..100 octets"},
		{channels, "supplier", 0, "the id or name of one of supplier-accounts"},
		{apps, "sp_id", "90 001", "1..6 octets, visible ASCII"},
		{apps, "status", "deleted", "one of active, disabled"},
		{addresses, "network", "10.0.0.0/33", "2..50 octets, an address or network as in 192.0.2.0/24"},
		{addresses, "network", "2001:db8::/32", ""},
		{manage.ByName("prefix-rules"), "prefix", "^1380028", ""},
		{manage.ByName("prefix-rules"), "prefix", "^1380028.*", ""},
		{manage.ByName("prefix-rules"), "prefix", "^1[38]0", "1..20 octets, 1..13 digits beginning with 1, or the same as a pattern anchored by ^"},
		{manage.ByName("prefix-rules"), "prefix", "0138", "1..20 octets, 1..13 digits beginning with 1, or the same as a pattern anchored by ^"},
		{manage.ByName("opt-outs"), "phone", "+8613800000000", ""},
		{manage.ByName("opt-outs"), "phone", "1380000", "a number of 11 digits, or 13 of a machine, with or without +86"},
		{manage.ByName("signatures"), "text", "【a】", "1..128 octets, 1..32 characters without blanks around them and without 【】"},
		{channels, "colour", "red", "left out, there is no such field; fields are "},
	} {
		got := ""
		for _, f := range c.r.Faults(manage.Doc{c.field: c.v}) {
			if f.Field == c.field && (c.v != nil || f.Value == nil) {
				got = f.Allowed
			}
		}
		if got != c.want && (c.field != "colour" || len(got) < len(c.want) || got[:len(c.want)] != c.want) {
			t.Errorf("%s.%s = %v: %q, want %q", c.r.Name, c.field, c.v, got, c.want)
		}
	}
	if f := apps.Faults(manage.Doc{"secret": fmt.Sprintf("%200s", "x")}); f.Error() == "" || slices.ContainsFunc(f, func(w manage.Fault) bool { return w.Field == "secret" && w.Value != "xxxxx" }) {
		t.Errorf("a secret in an error: %v", f)
	}
}
