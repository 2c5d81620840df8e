package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// Actor is who changes something; it stands in the audit.
type Actor struct {
	Token  int32 // 0 = the configured token or a command
	Name   string
	Role   Role
	Remote string // address of the caller
	Idem   string // idempotency key
}

// Manager reads and changes what people administer. Safe for concurrent use.
type Manager struct {
	pool  *pgxpool.Pool
	ids   *message.IDs
	nudge func()

	resources []*Resource
}

// New makes a Manager. nudge is called after each COMMIT that changed settings; ids are for ledger entries. Both may be
// nil where nothing needs them.
func New(pool *pgxpool.Pool, ids *message.IDs, nudge func()) *Manager {
	if nudge == nil {
		nudge = func() {}
	}
	return &Manager{pool: pool, ids: ids, nudge: nudge, resources: declared}
}

func (m *Manager) byName(name string) *Resource {
	i := slices.IndexFunc(m.resources, func(r *Resource) bool { return r.Name == name })
	return m.resources[i] // references name declared resources: a test says so
}

// Change is one transaction of an actor. All changes of settings run one after the other, under an advisory lock: checks
// over several rows, a sum against a contract for one, therefore hold until COMMIT.
type Change struct {
	tx       pgx.Tx
	actor    Actor
	manager  *Manager
	locked   bool
	settings bool // a version is to be raised
	rows     int
	failed   bool
	last     []func(context.Context) error // what takes the account's lock, behind everything else
	Bare     bool                          // applications made get no policy of their own
}

// Failed says that the database refused a statement: nothing more can be done in this transaction.
func (c *Change) Failed() bool { return c.failed }

// Rows is how many rows were written so far.
func (c *Change) Rows() int { return c.rows }

// Do runs fn in one transaction, raises the settings version when it changed settings, and commits.
func (m *Manager) Do(ctx context.Context, actor Actor, fn func(*Change) error) error {
	changed := false
	err := store.Retry(ctx, m.pool, func(tx pgx.Tx) error {
		c := &Change{tx: tx, actor: actor, manager: m}
		if err := fn(c); err != nil {
			return err
		}
		changed = c.settings
		return c.finish(ctx)
	})
	if err == nil && changed {
		m.nudge()
	}
	return err
}

func (c *Change) finish(ctx context.Context) error {
	if c.settings {
		if _, err := c.tx.Exec(ctx, store.SettingsBump); err != nil {
			return fmt.Errorf("raise the settings version: %w", err)
		}
	}
	for _, f := range c.last {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lock makes this the only change of settings until it commits.
func (c *Change) lock(ctx context.Context) error {
	if c.locked {
		return nil
	}
	if _, err := c.tx.Exec(ctx, store.ManageLock); err != nil {
		return fmt.Errorf("wait for other changes: %w", err)
	}
	c.locked = true
	return nil
}

// Create makes a row and returns it as shown, and the secret that was made up for it, if one was.
func (c *Change) Create(ctx context.Context, r *Resource, given Doc) (d Doc, secret string, err error) {
	if err := c.lock(ctx); err != nil {
		return nil, "", err
	}
	columns, faults := r.read(given, true)
	more, err := c.resolve(ctx, r, columns)
	if err != nil {
		return nil, "", err
	}
	faults = append(faults, more...)
	if len(faults) == 0 {
		if more, err = c.admit(ctx, r, nil, columns); err != nil {
			return nil, "", err
		}
		faults = append(faults, more...)
	}
	if len(faults) > 0 {
		return nil, "", faults
	}
	var row map[string]any
	if r.revive != nil {
		key := r.keyOf(columns)
		maps.Copy(columns, r.revive)
		row, err = c.row(ctx, store.ManageUpdate, r.Table, key, columns)
	}
	if err == nil && row == nil {
		row, err = c.row(ctx, store.ManageInsert, r.Table, columns)
	}
	if err != nil {
		return nil, "", fmt.Errorf("create %s: %w", r.Title, translate(err))
	}
	if f := r.Field("secret"); f != nil && given["secret"] == nil {
		secret, _ = columns[f.column()].(string)
	}
	d, err = c.wrote(ctx, r, "create", nil, row)
	return d, secret, err
}

// admit fills in the id of a new row and refuses a key and unique values that exist already, then asks the resource.
func (c *Change) admit(ctx context.Context, r *Resource, before, columns map[string]any) (FaultsError, error) {
	if before == nil && r.NextID && columns["id"] == nil {
		var id int64
		if err := c.tx.QueryRow(ctx, store.ManageNextID, r.Table).Scan(&id); err != nil {
			return nil, fmt.Errorf("next id of %s: %w", r.Name, err)
		}
		columns["id"] = id
	}
	after := maps.Clone(before)
	if after == nil {
		after = make(map[string]any, len(columns))
	}
	maps.Copy(after, columns)
	var faults FaultsError
	if before == nil && !c.keyIsNew(r, columns) {
		old, err := c.row(ctx, store.ManageGet, r.Table, r.keyOf(columns), false)
		if err != nil {
			return nil, err
		}
		if old != nil && (r.revive == nil || !r.gone(old)) {
			name := r.Key[len(r.Key)-1]
			faults = append(faults, Fault{Field: name, Value: r.Path(r.show(old)), Allowed: "new, this one exists", Conflict: true})
		}
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		v, given := columns[f.column()]
		if !f.Unique || !given || before != nil && reflect.DeepEqual(before[f.column()], v) {
			continue
		}
		other, err := c.find(ctx, r, map[string]any{f.column(): v})
		if err != nil {
			return nil, err
		}
		if other != nil && !same(r.keyOf(other), r.keyOf(after)) {
			faults = append(faults, Fault{Field: f.Name, Value: cut(f.Type.show(v)), Allowed: fmt.Sprintf("unique; %s %s has it", r.Title, r.Path(r.show(other))), Conflict: true})
		}
	}
	if r.check != nil && len(faults) == 0 {
		return r.check(ctx, c, before, columns)
	}
	return faults, nil
}

// keyIsNew says that the database gives the key.
func (c *Change) keyIsNew(r *Resource, columns map[string]any) bool {
	for _, k := range r.keyColumns() {
		if columns[k] == nil {
			return true
		}
	}
	return false
}

func same(a, b map[string]any) bool {
	for k, v := range a {
		if fmt.Sprint(v) != fmt.Sprint(b[k]) {
			return false
		}
	}
	return true
}

// Update changes the given fields of a row. etag is the version its editor saw; "*" is any. A change that changes nothing
// writes nothing.
func (c *Change) Update(ctx context.Context, r *Resource, key map[string]any, etag string, given Doc) (Doc, error) {
	before, err := c.current(ctx, r, key, etag)
	if err != nil {
		return nil, err
	}
	columns, faults := r.read(given, false)
	more, err := c.resolve(ctx, r, columns)
	if err != nil {
		return nil, err
	}
	faults = append(faults, more...)
	for i := range r.Fields {
		f := &r.Fields[i]
		v, there := columns[f.column()]
		if !there {
			continue
		}
		if fmt.Sprint(v) == fmt.Sprint(before[f.column()]) {
			delete(columns, f.column())
		} else if f.Fixed {
			faults = append(faults, setOnce(f, given[f.Name], before[f.column()]))
		}
	}
	if len(faults) == 0 && len(columns) > 0 {
		if more, err = c.admit(ctx, r, before, columns); err != nil {
			return nil, err
		}
		faults = append(faults, more...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if len(columns) == 0 {
		return r.show(before), nil
	}
	row, err := c.row(ctx, store.ManageUpdate, r.Table, r.keyOf(before), columns)
	if err != nil {
		return nil, fmt.Errorf("update %s %s: %w", r.Title, r.Path(r.show(before)), translate(err))
	}
	return c.wrote(ctx, r, "update", before, row)
}

// setOnce is the fault of changing what is given when a row is made.
func setOnce(f *Field, given, stored any) Fault {
	if f.Secret || f.Hidden {
		return Fault{Field: f.Name, Value: "xxxxx", Allowed: "left out, it is given when the row is made and has an operation of its own"}
	}
	return Fault{Field: f.Name, Value: cut(given), Allowed: fmt.Sprintf("%v, it is set once", f.Type.show(stored))}
}

// Put makes the row or changes it to have the given fields. Rows whose id the database gives are known by what they say. It
// says whether anything changed.
func (c *Change) Put(ctx context.Context, r *Resource, given Doc) (changed bool, err error) {
	columns, faults := r.read(given, true)
	if err := c.lock(ctx); err != nil {
		return false, err
	}
	more, err := c.resolve(ctx, r, columns)
	if err != nil {
		return false, err
	}
	if faults = append(faults, more...); len(faults) > 0 {
		return false, faults
	}
	rows := c.rows
	old, err := c.known(ctx, r, columns)
	if err != nil {
		return false, err
	}
	if old == nil || r.gone != nil && r.gone(old) {
		_, _, err = c.Create(ctx, r, given)
		return c.rows > rows, err
	}
	if r.adopt != nil {
		if err := r.adopt(ctx, c, old, columns); err != nil {
			return false, err
		}
	}
	rest := make(Doc, len(given))
	for name, v := range given {
		if f := r.Field(name); !f.Hidden && (!f.Secret || !f.Fixed) && !slices.Contains(r.Key, name) {
			rest[name] = v
		}
	}
	_, err = c.Update(ctx, r, r.keyOf(old), "*", rest)
	return c.rows > rows, err
}

// known is the row that columns speak of, or nil.
func (c *Change) known(ctx context.Context, r *Resource, columns map[string]any) (map[string]any, error) {
	if !c.keyIsNew(r, columns) {
		return c.row(ctx, store.ManageGet, r.Table, r.keyOf(columns), false)
	}
	if r.natural == nil {
		return nil, nil //nolint:nilnil // a new row
	}
	by := make(map[string]any, len(r.natural))
	for _, name := range r.natural {
		col := r.Field(name).column()
		by[col] = columns[col]
	}
	return c.find(ctx, r, by)
}

// Delete removes a row, unless another one refers to it.
func (c *Change) Delete(ctx context.Context, r *Resource, key map[string]any, etag string) error {
	before, err := c.current(ctx, r, key, etag)
	if err != nil {
		return err
	}
	var faults FaultsError
	if r.check != nil {
		if faults, err = r.check(ctx, c, before, nil); err != nil {
			return err
		}
	}
	if r.deleted == nil {
		more, err := c.users(ctx, r, before)
		if err != nil {
			return err
		}
		faults = append(faults, more...)
	}
	if len(faults) > 0 {
		return faults
	}
	var row map[string]any
	if r.deleted != nil {
		row, err = c.row(ctx, store.ManageUpdate, r.Table, r.keyOf(before), r.deleted(c))
	} else {
		_, err = c.row(ctx, store.ManageDelete, r.Table, r.keyOf(before))
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", r.Title, translate(err))
	}
	_, err = c.wrote(ctx, r, "delete", before, row)
	return err
}

// users are the rows that refer to one by its id.
func (c *Change) users(ctx context.Context, r *Resource, row map[string]any) (faults FaultsError, err error) {
	for _, other := range c.manager.resources {
		for i := range other.Fields {
			f := &other.Fields[i]
			if t, ok := f.Type.(ref); !ok || t.to != r.Name || f.ReadOnly {
				continue
			}
			user, err := c.find(ctx, other, map[string]any{f.column(): row["id"]})
			if err != nil {
				return nil, err
			}
			if user != nil {
				faults = append(faults, Fault{
					Field: "id", Value: row["id"], Allowed: fmt.Sprintf("unused; %s %s refers to it", other.Title, other.Path(other.show(user))), Conflict: true,
				})
			}
		}
	}
	return faults, nil
}

// current is the row as stored, locked, if it is the version that etag names.
func (c *Change) current(ctx context.Context, r *Resource, key map[string]any, etag string) (map[string]any, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	before, err := c.row(ctx, store.ManageGet, r.Table, key, true)
	switch {
	case err != nil:
		return nil, err
	case before == nil:
		return nil, ErrNotFound
	case etag != "*" && etag != r.ETag(r.show(before)):
		return nil, ErrStale
	}
	return before, nil
}

// wrote notes a change that was written.
func (c *Change) wrote(ctx context.Context, r *Resource, action string, before, after map[string]any) (Doc, error) {
	c.rows++
	c.settings = c.settings || !r.Silent
	shown := r.show(after)
	path := shown
	if path == nil {
		path = r.show(before)
	}
	if err := c.Note(ctx, action, r.Name, r.Path(path), r.show(before), r.withSecrets(shown, before, after)); err != nil {
		return nil, err
	}
	if r.done != nil {
		if err := r.done(ctx, c, before, after); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// Note writes a row of the audit.
func (c *Change) Note(ctx context.Context, action, resource, key string, before, after Doc) error {
	_, err := c.tx.Exec(ctx, store.ManageAudit, c.actor.Token, c.actor.Name, c.actor.Role.String(), c.actor.Remote, action, resource, key, c.actor.Idem,
		object(before), object(after))
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// object is a document for a jsonb parameter: NULL for none.
func object(d Doc) []byte {
	if d == nil {
		return nil
	}
	raw, _ := json.Marshal(d) // numbers, texts and lists of them cannot fail
	return raw
}

// row runs a statement that returns one row as jsonb, NULL for none. Arguments that are columns go as jsonb.
func (c *Change) row(ctx context.Context, sql string, args ...any) (map[string]any, error) {
	for i := range args {
		if m, ok := args[i].(map[string]any); ok {
			args[i] = object(m)
		}
	}
	var raw []byte
	if err := c.tx.QueryRow(ctx, sql, args...).Scan(&raw); err != nil {
		c.failed = c.failed || !errors.Is(err, pgx.ErrNoRows)
		return nil, err
	}
	return decode(raw)
}

// find is a row that has the columns, or nil.
func (c *Change) find(ctx context.Context, r *Resource, columns map[string]any) (map[string]any, error) {
	row, err := c.row(ctx, store.ManageList, r.Table, r.keyColumns(), false, map[string]any{}, columns, 1)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no such row is an answer
	}
	return row, err
}

func decode(raw []byte) (map[string]any, error) {
	if raw == nil {
		return nil, nil //nolint:nilnil // no such row is an answer
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var row map[string]any
	if err := d.Decode(&row); err != nil {
		return nil, fmt.Errorf("row: %w", err)
	}
	return row, nil
}

// resolve replaces names by ids and misses rows that are referred to and do not exist.
func (c *Change) resolve(ctx context.Context, r *Resource, columns map[string]any) (faults FaultsError, err error) {
	for i := range r.Fields {
		f := &r.Fields[i]
		t, ok := f.Type.(ref)
		v, there := columns[f.column()]
		if !ok || !there || v == nil || v == int64(0) {
			continue
		}
		to := c.manager.byName(t.to)
		by := map[string]any{"id": v}
		if name, ok := v.(byName); ok {
			by = map[string]any{to.lookup(): string(name)}
		}
		var row map[string]any
		if by[""] == nil {
			if row, err = c.find(ctx, to, by); err != nil {
				return nil, err
			}
		}
		if row == nil {
			faults = append(faults, Fault{Field: f.Name, Value: cut(fmt.Sprint(v)), Allowed: t.allowed()})
			continue
		}
		columns[f.column()] = row["id"]
	}
	return faults, nil
}

// translate turns a CHECK or a unique index of the database that a declaration does not repeat into a fault.
func translate(err error) error {
	const unique = "23505"
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == store.CodeCheck || pg.Code == unique) {
		return FaultsError{{Field: pg.ConstraintName, Value: "", Allowed: "as the database wants it: " + pg.Message, Conflict: pg.Code == unique}}
	}
	return err
}
