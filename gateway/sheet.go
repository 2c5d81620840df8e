package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/manage"
)

// appCommands are about one application.
type appCommands struct {
	Sheet sheetCommand `cmd:"" help:"Print what its owner needs to connect; never the secret."`
}

type sheetCommand struct {
	ID      string `arg:"" help:"Id or SP id of the application."`
	Address string `help:"Address as the customer sees it, in place of inbound.listen." placeholder:"HOST:PORT"`
}

// Run prints the sheet.
func (c *sheetCommand) Run(p *program) error {
	return p.manage(func(m *manage.Manager) error {
		a, err := m.FindAccount(p.ctx, c.ID)
		if errors.Is(err, manage.ErrNotFound) {
			return fmt.Errorf("application %q: %w", c.ID, err)
		}
		if err != nil {
			return err
		}
		return writeSheet(p.stdout, p.config, a, c.Address)
	})
}

func writeSheet(w io.Writer, c config.Config, a *manage.Account, address string) error {
	app := a.Application
	if address == "" {
		address = c.Inbound.Listen
	}
	versions := "2.0 and 3.0, as your CONNECT says"
	if app["version"] != "any" {
		versions = fmt.Sprint(app["version"], " only")
	}
	lines := [][2]string{
		{"Application", fmt.Sprintf("%v (%v) of %v, %v", app["name"], app["id"], a.Enterprise["name"], app["status"])},
		{"Address", address + ", TCP"},
		{"SP id (Source_Addr)", fmt.Sprint(app["sp_id"])},
		{"Shared secret", "given separately, once"},
		{"CMPP version", versions},
		{"Connections", fmt.Sprintf("at most %v", app["max_connections"])},
		{"Window", fmt.Sprintf("at most %v SUBMITs without an answer on a connection; we offer up to %d DELIVERs", app["window"], c.Delivery.DeliverWindow)},
		{"Rate", rates(a)},
		{"Allowed networks", joined(a.Addresses, "network", "any")},
		{"Src_Id", sourceRule(fmt.Sprint(app["access_number"]))},
		{"Signature", signatureRule(a)},
		{"Templates", templateRule(a.Policy)},
		{"Recipients", "mainland numbers of 11 digits, machine numbers of 13; with or without 86, +86 or 0086; 1..99 in a SUBMIT, all or none"},
		{"Carriers", joined(a.Routes, "carrier", "none: every message ends with ROUTE")},
		{"Formats (Msg_Fmt)", "0 ASCII, 8 UCS2 (big endian), 15 GB 18030; 3 and 4 binary; long messages by UDH, 8- or 16-bit reference"},
		{"Units and price", price(a)},
		{"Receipts", "DELIVER with Registered_Delivery 1, in the order of acceptance; unacknowledged ones come again"},
		{"Link test", fmt.Sprintf("ACTIVE_TEST after %s of silence, answered within %s, %d tries", c.Inbound.IdleInterval, c.Inbound.ResponseTimeout, c.Inbound.Tries)},
		{"Result 8", "flow control: send again after a moment"},
		{"Times", "Asia/Shanghai in CMPP fields"},
	}
	if c.Inbound.TLSListen != "" {
		lines = slices.Insert(lines, 2, [2]string{"Address with TLS", c.Inbound.TLSListen})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%-20s %s\n", l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

// rates are the limits that count, tightest wins.
func rates(a *manage.Account) string {
	var parts []string
	for _, l := range []struct {
		v    any
		what string
	}{
		{a.Application["link_tps"], "a connection"}, {a.Application["max_tps"], "the application"}, {a.Enterprise["max_tps"], "the enterprise"}, {a.Platform["max_tps"], "the platform"},
	} {
		if s := fmt.Sprint(l.v); s != "0" && l.v != nil {
			parts = append(parts, s+" a second for "+l.what)
		}
	}
	if len(parts) == 0 {
		return "no limit of its own"
	}
	return strings.Join(parts, ", ") + "; a message counts once per recipient and segment"
}

func joined(list []manage.Doc, field, none string) string {
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = fmt.Sprint(d[field])
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

func sourceRule(number string) string {
	if number == "" {
		return "any digits"
	}
	return "begins with " + number + ", 21 digits at most"
}

func signatureRule(a *manage.Account) string {
	if a.Policy == nil || a.Policy["signature_mode"] == "off" {
		return "not checked"
	}
	return fmt.Sprintf("exactly one 【…】, %v; approved: %s", a.Policy["signature_place"], joined(a.Signatures, "text", "none yet"))
}

func templateRule(policy manage.Doc) string {
	if policy == nil || policy["template_mode"] != "force" {
		return "free text"
	}
	return "every text must fit an approved template"
}

// price is what holds now and what is planned.
func price(a *manage.Account) string {
	now := time.Now()
	var current manage.Doc
	var at time.Time
	var planned []string
	for _, p := range a.Prices {
		from, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(p["effective_from"])) // the gateway wrote it
		switch {
		case from.After(now):
			planned = append(planned, fmt.Sprintf("%s from %s", yuan(p["price"]), from.Format(time.RFC3339)))
		case current == nil || !from.Before(at):
			current, at = p, from
		}
	}
	if current == nil {
		return "none in the history"
	}
	text := yuan(current["price"]) + " yuan a unit"
	if len(planned) > 0 {
		text += "; planned " + strings.Join(planned, ", ")
	}
	return text
}

// yuan is an amount of 1/10,000 yuan.
func yuan(v any) string {
	var n int64
	_, _ = fmt.Sscan(fmt.Sprint(v), &n) // it is a number, or 0 will do
	return fmt.Sprintf("%d.%04d", n/10_000, n%10_000)
}
