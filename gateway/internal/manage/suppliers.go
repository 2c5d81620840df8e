package manage

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

var supplierAccounts = &Resource{
	Name: "supplier-accounts", Title: "supplier account", Table: "supplier_account", Key: []string{"id"}, NextID: true,
	Read: Everyone, Make: Admin, Edit: Admin, Remove: Admin,
	Fields: []Field{
		id(), name(),
		{Name: "addr", Type: text{3, 255, hostPort}, Required: true},
		{Name: "sp_id", Type: text{1, 6, ascii}, Required: true},
		{Name: "secret", Type: text{1, secretMax, ascii}, Required: true, Secret: true},
		{Name: "version", Type: wires, Default: "3.0"},
		{Name: "max_connections", Type: integer{1, 8}, Required: true, Doc: "confirmed by contract, over all channels of the account"},
		{Name: "max_window", Type: integer{1, 64}, Required: true, Doc: "confirmed by contract, per connection"},
		{Name: "max_tps", Type: integer{0, tpsMax}, Default: 0, Doc: "confirmed by contract; 0 = none"},
	},
	check: func(ctx context.Context, c *Change, before, columns map[string]any) (FaultsError, error) {
		if before == nil || columns == nil {
			return nil, nil
		}
		account := maps.Clone(before)
		maps.Copy(account, columns)
		return c.contract(ctx, account, nil)
	},
}

var channels = &Resource{
	Name: "channels", Title: "channel", Table: "channel", Key: []string{"id"}, NextID: true, Filter: []string{"supplier", "carrier", "enabled", "name"},
	Read: Everyone, Make: Admin, Edit: Operator | Admin, Remove: Admin,
	Fields: []Field{
		id(), name(),
		{Name: "supplier", Column: "account_id", Type: ref{to: "supplier-accounts"}, Required: true, Fixed: true},
		{Name: "carrier", Type: carriers, Required: true},
		{Name: "enabled", Type: boolean{}, Default: true},
		{Name: "connections", Column: "desired_connections", Type: integer{1, 8}, Required: true},
		{Name: "window", Column: "window_size", Type: integer{1, 64}, Required: true, Doc: "SUBMITs without an answer, per connection"},
		{Name: "rate_limit", Type: integer{0, tpsMax}, Default: 0, Doc: "TPS of this channel; 0 = the account's"},
		{Name: "backlog_max", Type: integer{0, 10_000_000}, Default: 0, Doc: "commands waiting; from so many on, SUBMITs that would wait there are answered with result 8; 0 = no limit"},
		{Name: "warmup_seconds", Type: integer{0, 3600}, Default: 30, Doc: "between the logins of new connections"},
		{Name: "drain_seconds", Type: integer{0, 3600}, Default: 60, Doc: "a connection that is given up waits so long for its answers; the rest become unknown"},
		{Name: "response_seconds", Type: integer{1, 3600}, Default: 60, Doc: "wait for a SUBMIT_RESP"},
		{Name: "cooldown_seconds", Type: integer{0, 3600}, Default: 30, Doc: "rest of a connection after failures in a row"},
		{Name: "access_number", Type: text{1, 21, digits}, Required: true, Doc: "Src_Id base"},
		{Name: "append_extension", Type: boolean{}, Default: true, Doc: "append the customer's extension digits, 21 in all"},
		{Name: "signature_required", Type: boolean{}, Default: false, Doc: "takes only signatures approved for its access number"},
		{Name: "service_id", Type: text{0, 10, ascii}, Default: ""},
		{Name: "msg_src", Type: text{0, 6, ascii}, Default: "", Doc: "empty = the account's sp_id"},
		{Name: "fee_type", Type: text{0, 2, ascii}, Default: "01"},
		{Name: "fee_code", Type: text{0, 6, ascii}, Default: "0"},
		{Name: "fee_user_type", Type: feePayers, Default: "sp"},
		{Name: "fee_terminal", Type: text{0, 21, digits}, Default: "", Doc: "Fee_terminal_Id, when fee_user_type is fee_terminal"},
		{Name: "signature_by", Type: signers, Default: "text", Doc: "supplier: it puts the 【…】 there, the gateway takes it off the text"},
		{Name: "report_format", Type: reportFormats, Default: "by-length", Doc: "digits of the number in a status report"},
		{Name: "report_msg_id", Type: reportIDs, Default: "as-submitted", Doc: "Msg_Id in reports"},
		{Name: "long_fmt", Type: textFormats, Default: "customer", Doc: "Msg_Fmt of texts; ucs2 where another one cannot hold the text"},
		{Name: "long_ref16", Type: boolean{}, Default: false, Doc: "16-bit references of long messages: headers of 7 octets"},
		{Name: "segment_reports", Type: segmentReports, Default: "all", Doc: "parts of a long message that are reported"},
		{Name: "unit_rule", Type: units, Default: "cn-70-67", Doc: "how the supplier counts units"},
	},
	check: func(ctx context.Context, c *Change, before, columns map[string]any) (FaultsError, error) {
		if columns == nil {
			return nil, nil
		}
		channel := maps.Clone(before)
		if channel == nil {
			channel = map[string]any{}
		}
		maps.Copy(channel, columns)
		account, err := c.row(ctx, store.ManageGet, "supplier_account", map[string]any{"id": channel["account_id"]}, false)
		if err != nil || account == nil {
			return nil, err
		}
		return c.contract(ctx, account, channel)
	},
}

// contract compares the channels of an account with what its contract allows: the first of the three layers of
// capacity-plan §3.2. changed is a channel as it shall become, or nil; then the account is what changes.
func (c *Change) contract(ctx context.Context, account, changed map[string]any) (faults FaultsError, err error) {
	rows, err := c.tx.Query(ctx, store.ManageList, "channel", []string{"id"}, false, []byte("{}"), object(map[string]any{"account_id": account["id"]}), 100_000)
	if err != nil {
		return nil, fmt.Errorf("channels of the account: %w", err)
	}
	defer rows.Close()
	all := map[int64]map[string]any{}
	for rows.Next() {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		row, err := decode(raw)
		if err != nil {
			return nil, err
		}
		all[number(row["id"])] = row
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if changed != nil {
		all[number(changed["id"])] = changed
	}
	limits := []struct{ column, limit, field, limitField string }{
		{"desired_connections", "max_connections", "connections", "max_connections"}, {"window_size", "max_window", "window", "max_window"}, {"rate_limit", "max_tps", "rate_limit", "max_tps"},
	}
	var sum int64
	for id, ch := range all {
		if on, _ := ch["enabled"].(bool); on {
			sum += number(ch["desired_connections"])
		}
		if changed != nil && id != number(changed["id"]) {
			continue
		}
		for _, l := range limits {
			most := number(account[l.limit])
			if v := number(ch[l.column]); v > most && most > 0 {
				faults = append(faults, overContract(changed != nil, l.field, v, l.limitField, most, ch))
			}
		}
	}
	if most := number(account["max_connections"]); sum > most && len(faults) == 0 {
		f := Fault{Field: "connections", Value: sum, Allowed: fmt.Sprintf("at most %d over all enabled channels of the account, its contract", most)}
		if on, _ := changed["enabled"].(bool); changed != nil && !on {
			return faults, nil // a channel that is off needs nothing
		}
		if changed == nil {
			f = Fault{Field: "max_connections", Value: most, Allowed: fmt.Sprintf("at least %d, which its enabled channels have", sum)}
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func overContract(channel bool, field string, v int64, limitField string, most int64, ch map[string]any) Fault {
	if channel {
		return Fault{Field: field, Value: v, Allowed: fmt.Sprintf("at most %d, the contract's %s", most, limitField)}
	}
	return Fault{Field: limitField, Value: most, Allowed: fmt.Sprintf("at least %d, which channel %v has", v, ch["name"])}
}

var groups = &Resource{
	Name: "groups", Title: "group", Table: "channel_group", Key: []string{"id"}, NextID: true,
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{id(), name()},
}

var groupMembers = &Resource{
	Name: "group-members", Title: "member of a group", Table: "channel_group_member", Key: []string{"group", "channel"}, Filter: []string{"group", "channel"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "group", Column: "group_id", Type: ref{to: "groups"}, Required: true, Fixed: true},
		{Name: "channel", Column: "channel_id", Type: ref{to: "channels"}, Required: true, Fixed: true},
		{Name: "priority", Type: integer{0, 100}, Default: 0, Doc: "layer: the lowest with a usable channel serves all; 0 = primary, 1 = backup"},
		{Name: "weight", Type: integer{1, 1000}, Default: 1, Doc: "share within the layer"},
	},
}

var resultClasses = &Resource{
	Name: "result-classes", Title: "class of a result code", Table: "result_class", Key: []string{"channel", "code"}, Filter: []string{"channel"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "channel", Column: "channel_id", Type: ref{to: "channels", zero: "all channels"}, Default: 0, Fixed: true},
		{Name: "code", Type: integer{1, idMax}, Required: true, Fixed: true},
		{Name: "class", Type: classes, Required: true, Doc: "what follows the code; codes without a class are terminal"},
	},
}

// KeepMembers takes all channels but those named, by id or name, out of a group named likewise.
func (c *Change) KeepMembers(ctx context.Context, group any, kept []string) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	rows, err := c.tx.Query(ctx, store.ManageMembers, fmt.Sprint(group), kept)
	if err != nil {
		return fmt.Errorf("members of group %v: %w", group, err)
	}
	gone, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Group, Channel int32 }])
	if err != nil {
		return fmt.Errorf("members of group %v: %w", group, err)
	}
	for _, g := range gone {
		if err := c.Delete(ctx, groupMembers, map[string]any{"group_id": g.Group, "channel_id": g.Channel}, "*"); err != nil {
			return err
		}
	}
	return nil
}

var channelBreakers = &Resource{
	Name: "channel-breakers", Title: "breaker of a channel", Table: "channel_breaker", Key: []string{"channel"}, Read: Everyone, Silent: true,
	Fields: []Field{
		{Name: "channel", Column: "channel_id", Type: ref{to: "channels"}, ReadOnly: true},
		{Name: "state", Type: enum{onlyShown: []Word{{"open", 1}, {"half-open", 2}}}, ReadOnly: true},
		{Name: "trips", Type: integer{0, idMax}, ReadOnly: true},
		{Name: "since", Type: instant{}, ReadOnly: true},
		{Name: "until", Type: instant{}, ReadOnly: true},
		{Name: "reason", Type: text{0, 500, form{}}, ReadOnly: true},
	},
}

var dispatchStops = &Resource{
	Name: "dispatch-stops", Title: "stop of dispatching", Table: "dispatch_stop", Key: []string{"scope", "id"}, Filter: []string{"scope"},
	Read: Everyone, Make: Operator | Admin, Edit: Operator | Admin, Remove: Operator | Admin,
	Fields: []Field{
		{Name: "scope", Type: stopScopes, Required: true, Fixed: true},
		{Name: "id", Type: integer{0, idMax}, Default: 0, Fixed: true, Doc: "of the enterprise, application or channel; 0 for the platform"},
		{Name: "mode", Type: stopModes, Required: true, Doc: "hold: commands wait, and age; release: they end, their money is released. An application is released"},
		made("since"),
		{Name: "reason", Type: text{0, noteMost, form{}}, Default: "", Doc: "for people"},
	},
	check: checkStop,
}

// checkStop wants the thing that is stopped, and a mode that it can have.
func checkStop(ctx context.Context, c *Change, before, columns map[string]any) (faults FaultsError, err error) {
	if columns == nil {
		return nil, nil
	}
	stop := maps.Clone(before)
	if stop == nil {
		stop = map[string]any{}
	}
	maps.Copy(stop, columns)
	id := number(stop["id"])
	table := map[int64]string{2: "enterprise", 3: "application", 4: "channel"}[number(stop["scope"])]
	switch {
	case table == "" && id != 0:
		faults = append(faults, Fault{Field: "id", Value: id, Allowed: "0 for the platform"})
	case table != "":
		row, err := c.row(ctx, store.ManageGet, table, map[string]any{"id": id}, false)
		if err != nil {
			return nil, err
		}
		if row == nil {
			faults = append(faults, Fault{Field: "id", Value: id, Allowed: "the id of one of " + table + "s"})
		}
	}
	if table == "application" && number(stop["mode"]) != 2 {
		faults = append(faults, Fault{Field: "mode", Value: stopModes.show(stop["mode"]), Allowed: "release for an application"})
	}
	return faults, nil
}
