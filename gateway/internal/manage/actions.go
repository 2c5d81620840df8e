package manage

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// SecretFields is what the rotation of a secret takes.
var SecretFields = []Field{{Name: "secret", Type: text{1, secretMax, ascii}, Secret: true, Doc: "made up when left out"}}

// RotateSecret gives an application another secret and returns it, for the last time. Its sessions end within a second, and
// log in again with the new one.
func (c *Change) RotateSecret(ctx context.Context, application int32, given Doc) (string, error) {
	if err := c.lock(ctx); err != nil {
		return "", err
	}
	r := &Resource{Name: "applications", Title: "application", Fields: SecretFields}
	columns, faults := r.read(given, true)
	if len(faults) > 0 {
		return "", faults
	}
	secret, ok := columns["secret"].(string)
	if !ok {
		secret = NewSecret()
	}
	before, err := c.row(ctx, store.ManageGet, "application", map[string]any{"id": application}, true)
	if err != nil {
		return "", err
	}
	if before == nil {
		return "", ErrNotFound
	}
	after, err := c.row(ctx, store.ManageRotate, application, secret)
	if err != nil {
		return "", fmt.Errorf("rotate the secret of application %d: %w", application, err)
	}
	_, err = c.wrote(ctx, c.manager.byName("applications"), "rotate-secret", before, after)
	return secret, err
}

// ReplayDelivery offers a dead receipt or uplink to its customer anew.
func (c *Change) ReplayDelivery(ctx context.Context, id int64) error {
	before, err := c.row(ctx, store.ManageGet, deadLetters.Table, map[string]any{"id": id}, true)
	if err != nil {
		return err
	}
	if before == nil {
		return ErrNotFound
	}
	if before["kind"] != "delivery" {
		return FaultsError{{Field: "kind", Value: before["kind"], Allowed: "delivery; other dead letters cannot be replayed", Conflict: true}}
	}
	if before["replayed_at"] != nil {
		return FaultsError{{Field: "replayed_at", Value: before["replayed_at"], Allowed: "null; it was replayed before", Conflict: true}}
	}
	if _, err := c.tx.Exec(ctx, store.ManageReplay, id); err != nil {
		return fmt.Errorf("replay %d: %w", id, err)
	}
	after, err := c.row(ctx, store.ManageGet, deadLetters.Table, map[string]any{"id": id}, false)
	if err != nil {
		return err
	}
	_, err = c.wrote(ctx, deadLetters, "replay", before, after)
	return err
}

// RematchUplink puts an uplink that is nobody's back into the queue.
func (c *Change) RematchUplink(ctx context.Context, id int64) error {
	return c.unmatched(ctx, "rematch", store.UplinkRematch, id)
}

// DiscardUplink takes an uplink off the list of those that are nobody's.
func (c *Change) DiscardUplink(ctx context.Context, id int64) error {
	return c.unmatched(ctx, "discard", store.UplinkDiscard, id)
}

func (c *Change) unmatched(ctx context.Context, action, sql string, id int64) error {
	before, err := c.row(ctx, store.ManageGet, unmatchedUplinks.Table, map[string]any{"event_id": id}, true)
	if err != nil {
		return err
	}
	if before == nil {
		return ErrNotFound
	}
	if _, err := c.tx.Exec(ctx, sql, []int64{id}); err != nil {
		return fmt.Errorf("%s uplink %d: %w", action, id, err)
	}
	_, err = c.wrote(ctx, unmatchedUplinks, action, before, nil)
	return err
}

// DecideFields is what a decision about messages held for review takes.
var DecideFields = []Field{
	{Name: "messages", Type: list{of: longID{}, max: 500}, Required: true, Doc: "ids of held messages"},
	note(),
}

// DecidedFields is what it answers.
var DecidedFields = []Field{
	{Name: "approved", Type: list{of: longID{}, max: 500}, ReadOnly: true},
	{Name: "refused", Type: list{of: longID{}, max: 500}, ReadOnly: true, Doc: "rejected, or approved and not to be sent any more"},
	{Name: "gone", Type: list{of: longID{}, max: 500}, ReadOnly: true, Doc: "decided before, expired, or never held"},
}

// Decide lets held messages pass, or refuses them, with a function of the room that holds them. It comes last, since it
// takes the account's lock; its audit and answer follow it.
func (c *Change) Decide(given Doc, action string, decide func(ctx context.Context, tx pgx.Tx, ids []int64) (Doc, error), done func(context.Context, Doc) error) error {
	r := &Resource{Name: reviewHolds.Name, Fields: DecideFields}
	columns, faults := r.read(given, true)
	if len(faults) > 0 {
		return faults
	}
	var ids []int64
	for _, v := range columns["messages"].([]any) { //nolint:forcetypeassert // read made it
		ids = append(ids, number(v))
	}
	if len(ids) == 0 {
		return FaultsError{{Field: "messages", Value: 0, Allowed: "1..500 ids"}}
	}
	c.last = append(c.last, func(ctx context.Context) error {
		d, err := decide(ctx, c.tx, ids)
		if err != nil {
			return err
		}
		c.rows += len(ids)
		if err := c.Note(ctx, action, reviewHolds.Name, "", nil, Doc{"messages": given["messages"], "note": columns["note"], "outcome": d}); err != nil {
			return err
		}
		return done(ctx, d)
	})
	return nil
}

// Bounds of an import.
const (
	ImportLines  = 200_000 // of one import; more come in several
	ImportFaults = 100     // listed at most
)

// ImportNumbers takes ported numbers, a line "number,carrier" each, all or none. Lines that are empty or begin with # are
// passed over.
func (c *Change) ImportNumbers(ctx context.Context, in io.Reader) (Doc, error) {
	var phones []int64
	var to []int16
	err := eachLine(in, func(line string) (allowed string) {
		p, carrier, _ := strings.Cut(line, ",")
		n, allowed := phone{}.parse(strings.TrimSpace(p))
		if allowed != "" {
			return allowed
		}
		w, allowed := carriers.parse(strings.TrimSpace(carrier))
		if allowed == "" {
			phones, to = append(phones, number(n)), append(to, int16(number(w)))
		}
		return allowed
	})
	if err != nil {
		return nil, err
	}
	tag, err := c.tx.Exec(ctx, store.ManageImportNumbers, phones, to)
	if err != nil {
		return nil, fmt.Errorf("import numbers: %w", err)
	}
	d := Doc{"lines": int64(len(phones)), "changed": tag.RowsAffected()}
	c.rows += len(phones)
	return d, c.Note(ctx, "import", numberOverrides.Name, "", nil, d)
}

// ImportOptOuts takes numbers, one a line, into the list of an enterprise (0 = everybody) and signature ("" = every one).
func (c *Change) ImportOptOuts(ctx context.Context, given Doc, in io.Reader) (Doc, error) {
	r := &Resource{Name: optOuts.Name, Fields: OptOutImportFields}
	columns, faults := r.read(given, true)
	more, err := c.resolve(ctx, r, columns)
	if err != nil {
		return nil, err
	}
	if faults = append(faults, more...); len(faults) > 0 {
		return nil, faults
	}
	var phones []int64
	if err := eachLine(in, func(line string) string {
		n, allowed := phone{}.parse(line)
		if allowed == "" {
			phones = append(phones, number(n))
		}
		return allowed
	}); err != nil {
		return nil, err
	}
	tag, err := c.tx.Exec(ctx, store.ManageImportOptOuts, phones, number(columns["enterprise_id"]), columns["signature"], columns["marketing_only"], c.actor.Name)
	if err != nil {
		return nil, fmt.Errorf("import opt-outs: %w", err)
	}
	d := Doc{"enterprise": number(columns["enterprise_id"]), "signature": columns["signature"], "marketing_only": columns["marketing_only"], "lines": int64(len(phones)), "changed": tag.RowsAffected()}
	c.rows += len(phones)
	return d, c.Note(ctx, "import", optOuts.Name, "", nil, d)
}

// OptOutImportFields say whose list the numbers are for.
var OptOutImportFields = []Field{*optOuts.Field("enterprise"), *optOuts.Field("signature"), *optOuts.Field("marketing_only")}

// eachLine hands out lines and collects what is wrong with them.
func eachLine(in io.Reader, take func(line string) (allowed string)) error {
	var faults FaultsError
	lines := bufio.NewScanner(in)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if n > ImportLines {
			return FaultsError{{Field: "body", Value: n, Allowed: fmt.Sprintf("at most %d lines", ImportLines)}}
		}
		if allowed := take(line); allowed != "" && len(faults) < ImportFaults {
			faults = append(faults, Fault{Field: fmt.Sprintf("line %d", n), Value: cut(line), Allowed: allowed})
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// ImportedFields is what an import answers.
var ImportedFields = []Field{
	{Name: "lines", Type: integer{0, ImportLines}, ReadOnly: true},
	{Name: "changed", Type: integer{0, ImportLines}, ReadOnly: true},
}
