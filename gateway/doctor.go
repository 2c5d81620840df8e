package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"cmppgateway/gateway/internal/manage"
)

type doctorCommand struct {
	Account string `arg:"" help:"SP id or id of the application."`
}

// Run prints the state of an account, who tried to log in, why it was refused, and what to do.
func (c *doctorCommand) Run(p *program) error {
	return p.manage(func(m *manage.Manager) error {
		a, err := m.FindAccount(p.ctx, c.Account)
		missing := errors.Is(err, manage.ErrNotFound)
		if err != nil && !missing {
			return err
		}
		if missing {
			if _, err := fmt.Fprintf(p.stdout, "no application has the SP id or id %q\n", c.Account); err != nil {
				return err
			}
		} else if err := writeState(p.stdout, a); err != nil {
			return err
		}
		if err := writeLogins(p.stdout, a.Logins); err != nil {
			return err
		}
		todo := advise(a)
		for _, s := range todo {
			if _, err := fmt.Fprintln(p.stdout, "DO", s); err != nil {
				return err
			}
		}
		if missing {
			return fmt.Errorf("account %q: %w", c.Account, err)
		}
		if len(todo) == 0 {
			_, err := fmt.Fprintln(p.stdout, "nothing is wrong with the account as far as the gateway knows")
			return err
		}
		return nil
	})
}

func writeState(w io.Writer, a *manage.Account) error {
	app := a.Application
	_, err := fmt.Fprintf(w, `application   %v %v, SP id %v, %v
enterprise    %v %v, %v
account       %s yuan available, credit %s
version       %v, at most %v connections with a window of %v
rates         %s
networks      %s
routes        %s
signature     %s
waiting       %s SUBMITs, %s receipts and uplinks%s
last login    %s
`,
		app["id"], app["name"], app["sp_id"], app["status"], a.Enterprise["id"], a.Enterprise["name"], a.Enterprise["status"],
		yuanSigned(a.Money["available"]), yuanSigned(a.Money["credit"]), app["version"], app["max_connections"], app["window"], rates(a), joined(a.Addresses, "network", "any"),
		joined(a.Routes, "carrier", "none"), signatureRule(a), counted(a.Inbox), counted(a.Deliveries), oldest(a.OldestDelivery), moment(a.LastLogin))
	return err
}

func yuanSigned(v any) string {
	if s := fmt.Sprint(v); strings.HasPrefix(s, "-") {
		return "-" + yuan(s[1:])
	}
	return yuan(v)
}

func counted(n int64) string {
	if n >= manage.WaitingMost {
		return fmt.Sprintf("%d or more", n)
	}
	return strconv.FormatInt(n, 10)
}

func oldest(t *time.Time) string {
	if t == nil {
		return ""
	}
	return ", the oldest since " + moment(t)
}

func moment(t *time.Time) string {
	if t == nil {
		return "none known"
	}
	return t.UTC().Format(time.RFC3339)
}

func writeLogins(w io.Writer, logins []manage.Login) error {
	if len(logins) == 0 {
		_, err := fmt.Fprintln(w, "logins        none known, and no refusals")
		return err
	}
	if _, err := fmt.Fprintln(w, "logins and refusals, newest first:"); err != nil {
		return err
	}
	for _, l := range logins {
		what := "login"
		switch {
		case l.Status < 0:
			what = "closed: " + l.Cause
		case l.Status > 0:
			what = fmt.Sprintf("refused with %d: %s", l.Status, l.Cause)
		case l.Cause != "":
			what = "login: " + l.Cause
		}
		if l.Detail != "" {
			what += " (" + l.Detail + ")"
		}
		if _, err := fmt.Fprintf(w, "  %s  %-18s %5d times, version octet %#02x  %s\n", moment(&l.Last), l.Address, l.N, l.Version, what); err != nil {
			return err
		}
	}
	return nil
}

// advice says what helps against a cause of refusals, by how the cause begins.
var advice = []struct{ cause, do string }{
	{"too many refused logins", "the back-off follows refused logins: mend what they were refused for, then wait it out"},
	{"unknown Source_Addr", "the customer sends a Source_Addr that no application has: compare it with the SP id, digit by digit"},
	{"the address is none", "the customer comes from an address outside the allowed networks: add it to application-addresses, or have the customer use another"},
	{"AuthenticatorSource", "the customer's secret is another one: give it a new one (applications/{id}/secret), and check that it hashes SP id, nine zeros, secret and the ten digits of the timestamp"},
	{"the application is pinned", "the customer speaks another version than the application is pinned to: change either"},
	{"the application is disabled", "the application is disabled: enable it when that was not meant"},
	{"the enterprise is disabled", "the enterprise is disabled: enable it when that was not meant"},
	{"too many connections in all", "the gateway is at inbound.max_connections: raise it, or see who holds them"},
	{"too many connections of", "the customer has more connections than the application's max_connections: raise it, or have the customer close old ones"},
	{"not CMPP but TLS", "the customer speaks TLS to the plain port: give it the address with TLS"},
	{"not CMPP", "something that is no CMPP client connects from there"},
	{"no CMPP", "something that is no CMPP client connects from there"},
	{"no whole CONNECT", "the connection opens and no CONNECT follows: a firewall, a health check, or a client that waits"},
	{"another request than CONNECT", "the client sends requests before its CONNECT was answered"},
	{"no session id", "the gateway could not issue ids: see /readyz"},
}

// adviseLogin is what helps against a cause, "" when nothing is known.
func adviseLogin(cause string) string {
	for _, a := range advice {
		if strings.HasPrefix(cause, a.cause) {
			return a.do
		}
	}
	return ""
}

// advise is what to do, in the order in which it matters. Refusals from before the last login need nothing.
func advise(a *manage.Account) (todo []string) {
	if a.Application != nil {
		todo = adviseState(a)
	}
	seen := map[string]bool{}
	for _, l := range a.Logins {
		if a.LastLogin != nil && l.Last.Before(*a.LastLogin) || l.Status == 0 {
			continue
		}
		if do := adviseLogin(l.Cause); do != "" && !seen[do] {
			seen[do] = true
			todo = append(todo, fmt.Sprintf("from %s: %s", l.Address, do))
		}
	}
	return todo
}

func adviseState(a *manage.Account) (todo []string) {
	add := func(when bool, do string) {
		if when {
			todo = append(todo, do)
		}
	}
	add(a.Application["status"] != "active", fmt.Sprintf("the application is %v: no login is possible", a.Application["status"]))
	add(a.Enterprise["status"] != "active", fmt.Sprintf("the enterprise is %v: no login is possible", a.Enterprise["status"]))
	var available, credit int64
	_, _ = fmt.Sscan(fmt.Sprint(a.Money["available"]), &available) // a number, or 0 will do
	_, _ = fmt.Sscan(fmt.Sprint(a.Money["credit"]), &credit)
	add(available+credit <= 0, "no money is left: every message ends with BALANCE until a top-up")
	add(len(a.Routes) == 0, "the application has no route: every message ends with ROUTE")
	signed := a.Policy != nil && a.Policy["signature_mode"] != "off"
	add(signed && len(a.Signatures) == 0, "signatures are required and none is approved: every message ends with SIGNATURE")
	add(a.LastLogin == nil, "it has never logged in, or that was too long ago to be known: send the sheet (`gateway app sheet`)")
	add(a.Deliveries > 0 && a.LastLogin != nil && a.OldestDelivery != nil && time.Since(*a.OldestDelivery) > 10*time.Minute,
		"receipts wait: the customer is offline, or does not acknowledge DELIVERs")
	return todo
}
