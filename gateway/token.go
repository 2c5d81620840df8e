package main

import (
	"fmt"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/store"
)

// tokenCommands make and end tokens of the admin API where nobody has one yet.
type tokenCommands struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token; it is printed once."`
	List   tokenListCommand   `cmd:"" help:"List tokens, without their secrets."`
	Revoke tokenRevokeCommand `cmd:"" help:"End a token at once."`
}

// operator stands in the audit for what commands do.
var operator = manage.Actor{Name: "command line", Role: manage.Admin}

type tokenCreateCommand struct {
	Role        string `help:"What it may: ${enum}." enum:"viewer,operator,finance,admin" required:""`
	Name        string `help:"Who has it." required:""`
	ExpiresDays int    `help:"Days that it holds; 0 = for ever." default:"365"`
}

// Run prints the token alone on standard output, for scripts that put it away.
func (c *tokenCreateCommand) Run(p *program) error {
	return p.manage(func(m *manage.Manager) error {
		var id any
		var token string
		err := m.Do(p.ctx, operator, func(ch *manage.Change) error {
			d, secret, err := ch.CreateToken(p.ctx, manage.Doc{"name": c.Name, "role": c.Role, "expires_days": c.ExpiresDays})
			id, token = d["id"], secret
			return err
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.stderr, "token %v of role %s; it is not shown again\n", id, c.Role); err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.stdout, token)
		return err
	})
}

type tokenListCommand struct{}

// Run prints a line for each token.
func (tokenListCommand) Run(p *program) error {
	return p.manage(func(m *manage.Manager) error {
		const most = 10_000
		list, err := m.List(p.ctx, manage.ByName("tokens"), map[string]any{}, nil, most)
		for _, d := range list {
			state := "holds"
			if d["revoked_at"] != nil {
				state = fmt.Sprint("revoked ", d["revoked_at"])
			} else if d["expires_at"] != nil {
				state = fmt.Sprint("expires ", d["expires_at"])
			}
			if _, err := fmt.Fprintf(p.stdout, "%v\t%v\t%v\t%s\tlast used %v\n", d["id"], d["role"], d["name"], state, or(d["used_at"], "never")); err != nil {
				return err
			}
		}
		return err
	})
}

func or(v, none any) any {
	if v == nil {
		return none
	}
	return v
}

type tokenRevokeCommand struct {
	ID int32 `arg:"" help:"Number of the token."`
}

// Run ends the token.
func (c *tokenRevokeCommand) Run(p *program) error {
	return p.manage(func(m *manage.Manager) error {
		err := m.Do(p.ctx, operator, func(ch *manage.Change) error { return ch.RevokeToken(p.ctx, c.ID) })
		if err != nil {
			return fmt.Errorf("token %d: %w", c.ID, err)
		}
		_, err = fmt.Fprintf(p.stdout, "token %d is revoked\n", c.ID)
		return err
	})
}

// manage is withPools for commands that administer and write no entries.
func (p *program) manage(f func(*manage.Manager) error) error {
	return p.withPools(func(pools *store.Pools) error { return f(manage.New(pools.Admin, nil, nil)) })
}
