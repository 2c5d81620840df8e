package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.yaml.in/yaml/v4"

	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

// Columns name the columns of a statement by their heads, or by their places from "1" in a file without a head.
// MsgID and Number must be there, the others may be empty.
type Columns struct {
	Account string `json:"account,omitempty" yaml:"account"` // login id; lines of others are passed over
	MsgID   string `json:"msg_id"            yaml:"msg_id"`
	Number  string `json:"number"            yaml:"number"`
	Src     string `json:"src,omitempty"     yaml:"src"`    // Src_Id used
	Time    string `json:"time,omitempty"    yaml:"time"`   // of the SUBMIT
	Result  string `json:"result,omitempty"  yaml:"result"` // without it every line is an accepted submit
	Units   string `json:"units,omitempty"   yaml:"units"`  // without it a line is one unit
}

// Format says how a supplier account writes its daily statement.
type Format struct {
	Columns    Columns  `json:"columns"               yaml:"columns"`
	Delimiter  string   `json:"delimiter,omitempty"   yaml:"delimiter"`   // one character, default ","
	Encoding   string   `json:"encoding,omitempty"    yaml:"encoding"`    // utf-8 (default), gb18030
	NoHeader   bool     `json:"no_header,omitempty"   yaml:"no_header"`   // the first line is data
	MsgIDBase  string   `json:"msg_id_base,omitempty" yaml:"msg_id_base"` // auto (default: decimal, 22 digits, or 16 hex digits with a letter or leading 0), decimal, hex
	TimeLayout string   `json:"time_layout,omitempty" yaml:"time_layout"` // as Go writes it, default any of RFC 3339, 2006-01-02 15:04:05, 20060102150405, 0601021504
	Accepted   []string `json:"accepted,omitempty"    yaml:"accepted"`    // values of the result column that mean accepted, default "0"
	DayCutoff  string   `json:"day_cutoff,omitempty"  yaml:"day_cutoff"`  // when their day begins after midnight in Asia/Shanghai, -12h..12h, default 0s
	UnitRule   string   `json:"unit_rule,omitempty"   yaml:"unit_rule"`   // segments (default: a SUBMIT is one unit), cn-70-67, gsm-160-153
}

// Default is the format of the simulator's statements and of `gateway unknown resolve`.
var Default = Format{Columns: Columns{Account: "account", MsgID: "msg_id", Number: "number", Src: "src_id", Time: "submit_time", Result: "result"}}

const maxCutoff = 12 * time.Hour

// rules is a Format read.
type rules struct {
	Format

	comma    rune
	gb18030  bool
	accepted map[string]bool
	cutoff   time.Duration
	units    func(text string) int // nil = one a SUBMIT
}

// parse checks f; every fault is named.
func (f Format) parse() (*rules, error) {
	r := &rules{Format: f, comma: ',', accepted: map[string]bool{}}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if f.Columns.MsgID == "" {
		fault("columns.msg_id is empty: want the head of a column")
	}
	if f.Columns.Number == "" {
		fault("columns.number is empty: want the head of a column")
	}
	if d := []rune(f.Delimiter); len(d) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", d[0]) {
		r.comma = d[0]
	} else if f.Delimiter != "" {
		fault("delimiter %q: want one character, no quote or line end", f.Delimiter)
	}
	switch f.Encoding {
	case "", "utf-8":
	case "gb18030":
		r.gb18030 = true
	default:
		fault("encoding %q: want utf-8 or gb18030", f.Encoding)
	}
	if b := f.MsgIDBase; b != "" && b != "auto" && b != "decimal" && b != "hex" {
		fault("msg_id_base %q: want auto, decimal or hex", b)
	}
	for _, a := range f.Accepted {
		r.accepted[a] = true
	}
	if len(f.Accepted) == 0 {
		r.accepted["0"] = true
	}
	if f.DayCutoff != "" {
		var err error
		if r.cutoff, err = time.ParseDuration(f.DayCutoff); err != nil || r.cutoff.Abs() > maxCutoff {
			fault("day_cutoff %q: want -12h..12h", f.DayCutoff)
		}
	}
	if f.UnitRule != "" && f.UnitRule != "segments" {
		rule, err := sms.ParseUnitRule(f.UnitRule)
		if err != nil {
			fault("unit_rule %q: want segments, cn-70-67 or gsm-160-153", f.UnitRule)
		}
		if f.Columns.Units == "" {
			fault("unit_rule %q needs columns.units: a statement without units has one a line", f.UnitRule)
		}
		r.units = func(text string) int { return sms.Units(text, rule) }
	}
	return r, errors.Join(faults...)
}

// ReadFormat reads a format from YAML, strictly, and checks it.
func ReadFormat(from io.Reader) (Format, error) {
	var f Format
	d := yaml.NewDecoder(from)
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("statement format: %w", err)
	}
	if _, err := f.parse(); err != nil {
		return f, fmt.Errorf("statement format: %w", err)
	}
	return f, nil
}

// SetFormat stores how account writes its statements.
func SetFormat(ctx context.Context, pool *pgxpool.Pool, account int32, f Format) error {
	if _, err := f.parse(); err != nil {
		return fmt.Errorf("statement format: %w", err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("statement format: %w", err)
	}
	if _, err := pool.Exec(ctx, store.ReconcileFormatSet, account, text); err != nil {
		return fmt.Errorf("statement format of account %d: %w", account, err)
	}
	return nil
}

// FormatOf is how account writes its statements; Default when nothing else was stored.
func FormatOf(ctx context.Context, pool *pgxpool.Pool, account int32) (Format, error) {
	var text []byte
	err := pool.QueryRow(ctx, store.ReconcileFormat, account).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return Default, nil
	}
	if err != nil {
		return Format{}, fmt.Errorf("statement format of account %d: %w", account, err)
	}
	var f Format
	if err := json.Unmarshal(text, &f); err != nil {
		return Format{}, fmt.Errorf("statement format of account %d: %w", account, err)
	}
	return f, nil
}
