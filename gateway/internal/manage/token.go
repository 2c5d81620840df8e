package manage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// tokenMark begins every token, so that one that leaked is recognised for what it is.
const tokenMark = "cgw_"

// TokenFields is what a new token takes.
var TokenFields = []Field{
	{Name: "name", Type: text{lo: 1, hi: nameMost}, Required: true, Doc: "who has it"},
	{Name: "role", Type: enum{words: RoleWords}, Required: true},
	{Name: "expires_days", Type: integer{0, 3650}, Default: 365, Doc: "0 = never"},
}

// TokenField is the token in the answer to its making.
var TokenField = Field{Name: "token", Type: text{lo: 1, hi: 200}, ReadOnly: true, Doc: "shown once"}

// CreateToken makes a token and returns it with its secret: the only time that it can be seen. Its 256 random bits need no
// slow hash.
func (c *Change) CreateToken(ctx context.Context, given Doc) (Doc, string, error) {
	r := &Resource{Name: tokens.Name, Title: tokens.Title, Fields: TokenFields}
	columns, faults := r.read(given, true)
	if len(faults) > 0 {
		return nil, "", faults
	}
	secret := rand.Text() + rand.Text()
	var expires *time.Time
	if days := number(columns["expires_days"]); days > 0 {
		t := time.Now().AddDate(0, 0, int(days)).UTC()
		expires = &t
	}
	sum := sha256.Sum256([]byte(secret))
	var raw []byte
	if err := c.tx.QueryRow(ctx, store.ManageToken, columns["name"], columns["role"], sum[:], expires).Scan(&raw); err != nil {
		return nil, "", fmt.Errorf("create token: %w", err)
	}
	row, err := decode(raw)
	if err != nil {
		return nil, "", err
	}
	d, err := c.wrote(ctx, tokens, "create", nil, row)
	return d, fmt.Sprintf("%s%d_%s", tokenMark, number(row["id"]), secret), err
}

// RevokeToken ends a token at once.
func (c *Change) RevokeToken(ctx context.Context, id int32) error {
	before, err := c.row(ctx, store.ManageGet, tokens.Table, map[string]any{"id": id}, true)
	if err != nil {
		return err
	}
	if before == nil {
		return ErrNotFound
	}
	if before["revoked_at"] != nil {
		return nil
	}
	after, err := c.row(ctx, store.ManageUpdate, tokens.Table, map[string]any{"id": id}, map[string]any{"revoked_at": time.Now().UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return fmt.Errorf("revoke token %d: %w", id, err)
	}
	_, err = c.wrote(ctx, tokens, "revoke", before, after)
	return err
}

// ErrToken says that a token is none of ours, revoked or expired.
var ErrToken = errors.New("no valid token")

// Authenticate finds the actor of a token. Secrets are compared as hashes, in constant time.
func (m *Manager) Authenticate(ctx context.Context, token string) (Actor, error) {
	rest, ok := strings.CutPrefix(token, tokenMark)
	number, secret, ok2 := strings.Cut(rest, "_")
	id, err := strconv.ParseInt(number, 10, 32)
	if !ok || !ok2 || err != nil || id <= 0 {
		return Actor{}, ErrToken
	}
	var a Actor
	var hash []byte
	err = m.pool.QueryRow(ctx, store.ManageTokenFind, int32(id)).Scan(&a.Name, &a.Role, &hash)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Actor{}, fmt.Errorf("find token: %w", err)
	}
	sum := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(sum[:], hash) != 1 {
		return Actor{}, ErrToken
	}
	a.Token = int32(id)
	if _, err := m.pool.Exec(ctx, store.ManageTokenUsed, a.Token); err != nil {
		return Actor{}, fmt.Errorf("note the use of token %d: %w", id, err)
	}
	return a, nil
}

// Answer is what a request with an idempotency key was answered, without secrets.
type Answer struct {
	Status int
	ETag   string
	Body   []byte
}

// Replay reserves the actor's idempotency key for a request, or finds the answer that the request was given before; nil
// when there is none. A concurrent request with the key is waited for. The key of another request is ErrKeyReused.
func (c *Change) Replay(ctx context.Context, request []byte) (*Answer, error) {
	sum := sha256.Sum256(request)
	tag, err := c.tx.Exec(ctx, store.ManageAnswerReserve, c.actor.Token, c.actor.Idem, sum[:])
	if err != nil {
		return nil, fmt.Errorf("idempotency key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil //nolint:nilnil // no answer yet
	}
	var earlier []byte
	var a Answer
	if err := c.tx.QueryRow(ctx, store.ManageAnswerFind, c.actor.Token, c.actor.Idem).Scan(&earlier, &a.Status, &a.ETag, &a.Body); err != nil {
		return nil, fmt.Errorf("idempotency key: %w", err)
	}
	if hex.EncodeToString(earlier) != hex.EncodeToString(sum[:]) {
		return nil, ErrKeyReused
	}
	return &a, nil
}

// Keep keeps the answer for the actor's idempotency key, in the transaction of what it says.
func (c *Change) Keep(ctx context.Context, a Answer) error {
	if _, err := c.tx.Exec(ctx, store.ManageAnswerKeep, c.actor.Token, c.actor.Idem, a.Status, a.ETag, a.Body); err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	return nil
}
