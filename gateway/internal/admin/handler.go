package admin

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/wake"
)

const (
	pageDefault = 100
	pageMax     = 1000
)

// Page is the answer to a list.
type Page struct {
	Items []manage.Doc `json:"items"`
	Next  string       `json:"next"` // the parameter after of the next page; "" at the end
}

// key reads the key of the resource from the path.
func (c *call) key(r *manage.Resource) (map[string]any, error) {
	params := c.route.params()
	parts := make([]string, 0, len(params))
	for _, p := range params {
		parts = append(parts, c.PathValue(p))
	}
	return r.ParseKey(parts)
}

// id reads the only parameter of the path.
func (c *call) id() (int32, error) {
	n, err := strconv.ParseInt(c.PathValue(c.route.params()[0]), 10, 32)
	if err != nil || n <= 0 {
		return 0, manage.ErrNotFound
	}
	return int32(n), nil
}

func listRows(r *manage.Resource) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		given, faults := map[string]string{}, manage.FaultsError{}
		var after map[string]any
		limit := pageDefault
		for name, values := range c.URL.Query() {
			v := values[0]
			switch {
			case len(values) > 1:
				faults = append(faults, manage.Fault{Field: name, Value: len(values), Allowed: "given once"})
			case name == "limit":
				n, err := strconv.Atoi(v)
				if err != nil || n < 1 || n > pageMax {
					faults = append(faults, manage.Fault{Field: name, Value: v, Allowed: "1..1000"})
				}
				limit = n
			case name == "after" && v == "": // from the beginning
			case name == "after":
				key, err := parsePath(r, v)
				if err != nil {
					faults = append(faults, manage.Fault{Field: name, Value: v, Allowed: "the value of next of the page before"})
				}
				after = key
			default:
				given[name] = v
			}
		}
		filter, err := r.FilterBy(given)
		if more, ok := err.(manage.FaultsError); ok { //nolint:errorlint // it is never wrapped
			faults = append(faults, more...)
		}
		if len(faults) > 0 {
			return faults
		}
		rows, err := c.manager.List(ctx, r, filter, after, limit+1)
		if err != nil {
			return err
		}
		page := Page{Items: rows}
		if len(rows) > limit {
			page.Items = rows[:limit]
			page.Next = r.Path(rows[limit-1])
		}
		c.answer = answer{status: c.route.status, body: page}
		return nil
	}
}

func parsePath(r *manage.Resource, path string) (map[string]any, error) {
	parts := strings.Split(path, "/")
	for i := range parts {
		p, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil, manage.ErrNotFound
		}
		parts[i] = p
	}
	return r.ParseKey(parts)
}

func readRow(r *manage.Resource) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		key, err := c.key(r)
		if err != nil {
			return err
		}
		d, err := c.manager.Get(ctx, r, key)
		if err != nil {
			return err
		}
		c.answer = answer{status: c.route.status, etag: r.ETag(d), body: d}
		return nil
	}
}

func makeRow(r *manage.Resource) func(context.Context, *manage.Change, *call) error {
	return func(ctx context.Context, ch *manage.Change, c *call) error {
		d, secret, err := ch.Create(ctx, r, c.body)
		if err != nil {
			return err
		}
		c.answer = answer{status: c.route.status, etag: r.ETag(d), location: prefix + r.Name + "/" + r.Path(d), body: d}
		if secret != "" {
			c.answer.stored = d
			c.answer.body = with(d, "secret", secret)
		}
		return nil
	}
}

// with is a copy of d with one more field.
func with(d manage.Doc, name string, v any) manage.Doc {
	out := manage.Doc{name: v}
	maps.Copy(out, d)
	return out
}

func editRow(r *manage.Resource) func(context.Context, *manage.Change, *call) error {
	return func(ctx context.Context, ch *manage.Change, c *call) error {
		key, err := c.key(r)
		if err != nil {
			return err
		}
		d, err := ch.Update(ctx, r, key, c.etag, c.body)
		if err != nil {
			return err
		}
		c.answer = answer{status: c.route.status, etag: r.ETag(d), body: d}
		return nil
	}
}

func removeRow(r *manage.Resource) func(context.Context, *manage.Change, *call) error {
	return func(ctx context.Context, ch *manage.Change, c *call) error {
		key, err := c.key(r)
		if err != nil {
			return err
		}
		c.answer = answer{status: c.route.status}
		return ch.Delete(ctx, r, key, c.etag)
	}
}

func topUp(ctx context.Context, ch *manage.Change, c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	c.kept = true // at the end of the transaction
	return ch.TopUp(ctx, id, c.body, c.actor.Idem, func(ctx context.Context, d manage.Doc) error {
		c.answer = answer{status: c.route.status, body: d, location: prefix + "entries/" + d["entry"].(string)}
		return c.keep(ctx, ch)
	})
}

func setCredit(ctx context.Context, ch *manage.Change, c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	c.kept = true // at the end of the transaction
	return ch.SetCredit(ctx, id, c.body, c.etag, func(ctx context.Context, d manage.Doc) error {
		c.answer = answer{status: c.route.status, etag: c.route.out.ETag(d), body: d}
		return c.keep(ctx, ch)
	})
}

func setPrice(ctx context.Context, ch *manage.Change, c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	d, err := ch.SetPrice(ctx, id, c.body)
	if err != nil {
		return err
	}
	c.answer = answer{status: c.route.status, body: d, location: prefix + "prices/" + c.route.out.Path(d)}
	return nil
}

func dropPrice(ctx context.Context, ch *manage.Change, c *call) error {
	key, err := c.key(manage.ByName("prices"))
	if err != nil {
		return err
	}
	c.answer = answer{status: c.route.status}
	return ch.DropPrice(ctx, key)
}

func rotate(ctx context.Context, ch *manage.Change, c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	secret, err := ch.RotateSecret(ctx, id, c.body)
	if err != nil {
		return err
	}
	d := manage.Doc{"id": id}
	c.answer = answer{status: c.route.status, body: with(d, "secret", secret), stored: d}
	return nil
}

func importNumbers(ctx context.Context, ch *manage.Change, c *call) error {
	d, err := ch.ImportNumbers(ctx, bytes.NewReader(c.raw))
	c.answer = answer{status: c.route.status, body: d}
	return err
}

func importOptOuts(ctx context.Context, ch *manage.Change, c *call) error {
	given := manage.Doc{}
	for name, values := range c.URL.Query() {
		given[name] = manage.FromQuery(c.route.query, name, values[0])
	}
	d, err := ch.ImportOptOuts(ctx, given, bytes.NewReader(c.raw))
	c.answer = answer{status: c.route.status, body: d}
	return err
}

func replay(ctx context.Context, ch *manage.Change, c *call) error {
	id, err := strconv.ParseInt(c.PathValue("id"), 10, 64)
	if err != nil {
		return manage.ErrNotFound
	}
	c.answer = answer{status: http.StatusNoContent}
	c.after = func() { c.publish(wake.Deliveries) }
	return ch.ReplayDelivery(ctx, id)
}

// unmatched does something with an uplink that is nobody's.
func unmatched(do func(*manage.Change, context.Context, int64) error) func(context.Context, *manage.Change, *call) error {
	return func(ctx context.Context, ch *manage.Change, c *call) error {
		id, err := strconv.ParseInt(c.PathValue("event_id"), 10, 64)
		if err != nil {
			return manage.ErrNotFound
		}
		c.answer = answer{status: http.StatusNoContent}
		c.after = func() { c.publish(wake.Uplinks) }
		return do(ch, ctx, id)
	}
}

func makeToken(ctx context.Context, ch *manage.Change, c *call) error {
	d, token, err := ch.CreateToken(ctx, c.body)
	if err != nil {
		return err
	}
	c.answer = answer{status: c.route.status, location: prefix + "tokens/" + c.route.out.Path(d), body: with(d, manage.TokenField.Name, token), stored: d}
	return nil
}

func revokeToken(ctx context.Context, ch *manage.Change, c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	c.answer = answer{status: c.route.status}
	return ch.RevokeToken(ctx, id)
}

// decide approves or rejects messages held for review.
func decide(approve bool) func(context.Context, *manage.Change, *call) error {
	return func(_ context.Context, ch *manage.Change, c *call) error {
		if c.review == nil {
			return problem{status: http.StatusServiceUnavailable, code: "busy", detail: "this process has no core role: ask one that has"}
		}
		verb, run := "reject", c.review.Reject
		if approve {
			verb, run = "approve", c.review.Approve
		}
		c.kept = true // at the end of the transaction
		return ch.Decide(c.body, verb, func(ctx context.Context, tx pgx.Tx, ids []int64) (manage.Doc, error) {
			o, err := run(ctx, tx, ids)
			c.after = func() { c.review.Committed(o) }
			refused := slices.Sorted(maps.Keys(o.Refused))
			return manage.Doc{"approved": idTexts(o.Approved), "refused": idTexts(refused), "gone": idTexts(o.Gone)}, err
		}, func(ctx context.Context, d manage.Doc) error {
			c.answer = answer{status: c.route.status, body: d}
			return c.keep(ctx, ch)
		})
	}
}

func idTexts(ids []int64) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.FormatInt(id, 10)
	}
	return list
}
