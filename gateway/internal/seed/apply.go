package seed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cmppgateway/gateway/internal/manage"
)

// Result counts what Apply changed.
type Result struct {
	Rows   int64 // settings rows written
	TopUps int   // opening balances booked
}

// actor stands in the audit for what a file brought.
var actor = manage.Actor{Name: "seed", Role: manage.Admin}

// Apply writes the file: all settings in one transaction that raises the settings version when anything changed, then
// each opening balance once. A second run with the same file changes nothing. Nothing is written when anything is wrong:
// the error then is a FaultsError with every fault of the file, each with its line.
func Apply(ctx context.Context, m *manage.Manager, f *File) (Result, error) {
	var res Result
	err := m.Do(ctx, actor, func(c *manage.Change) error {
		res.Rows = 0
		c.Bare = true // a file says itself which applications have a policy
		found, err := f.put(ctx, c)
		if err != nil {
			return err
		}
		res.Rows = int64(c.Rows())
		return append(slices.Clone(f.faults), found...).err(f.path)
	})
	if err != nil {
		return Result{}, fmt.Errorf("seed: %w", err)
	}
	for i := range f.rows {
		r := &f.rows[i]
		if err := f.money(ctx, m, r, &res); err != nil {
			return res, fmt.Errorf("seed: enterprise %v: %w", r.doc["id"], err)
		}
	}
	return res, nil
}

// put writes the rows in order; what is wrong with one does not hide what is wrong with the next.
func (f *File) put(ctx context.Context, c *manage.Change) (found faults, err error) {
	broken := map[string]bool{} // names of rows that are at fault: what refers to them is not blamed too
	for i := range f.rows {
		r := &f.rows[i]
		static := r.resource.Faults(r.doc)
		if len(static) > 0 {
			broken[fmt.Sprint(r.doc["name"])], broken[fmt.Sprint(r.doc["sp_id"])], broken[fmt.Sprint(r.doc["id"])] = true, true, true
			continue // Load has said what
		}
		_, err := c.Put(ctx, r.resource, r.doc)
		var wrong manage.FaultsError
		switch {
		case errors.As(err, &wrong):
			broken[fmt.Sprint(r.doc["name"])], broken[fmt.Sprint(r.doc["sp_id"])] = true, true
			at := File{path: f.path}
			for _, w := range wrong {
				if !broken[fmt.Sprint(w.Value)] || w.Conflict {
					at.fault(r, w)
				}
			}
			found = append(found, at.faults...)
			if wrong[0].Value == "" && wrong[0].Conflict || c.Failed() {
				return found, nil // the database itself refused: the transaction is over
			}
		case err != nil:
			return nil, err
		case r.members != nil:
			if err := c.KeepMembers(ctx, r.doc["name"], r.members); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// money sets the credit and books the opening balance, each only when it is not there yet.
func (f *File) money(ctx context.Context, m *manage.Manager, r *row, res *Result) error {
	id, _ := r.doc["id"].(int)
	if r.label != "enterprises" || r.credit == nil && r.opening == 0 {
		return nil
	}
	nothing := func(context.Context, manage.Doc) error { return nil }
	if r.credit != nil {
		err := m.Do(ctx, actor, func(c *manage.Change) error {
			return c.SetCredit(ctx, int32(id), manage.Doc{"credit": *r.credit}, "*", nothing)
		})
		if err != nil {
			return err
		}
	}
	if r.opening == 0 {
		return nil
	}
	err := m.Do(ctx, actor, func(c *manage.Change) error {
		return c.TopUp(ctx, int32(id), manage.Doc{"amount": r.opening, "note": "opening balance of a seed file"}, "opening", nothing)
	})
	if errors.Is(err, manage.ErrKeyReused) {
		return nil // booked by an earlier run
	}
	if err == nil {
		res.TopUps++
	}
	return err
}
