package admin

import (
	"context"
	"strings"

	"cmppgateway/gateway/internal/manage"
)

// prefix of everything that people administer.
const prefix = "/api/admin/v1/"

// route is one operation of the API. Its declaration is what the server does, who may, and what the document says.
type route struct {
	method  string
	path    string // with {parameters}
	roles   manage.Role
	summary string

	in       []manage.Field // fields of the body, nil = none
	merge    bool           // the body changes some of them: none is required
	lines    string         // the body is text of such lines instead
	query    []manage.Field // parameters of the query
	out      *manage.Resource
	outputs  []manage.Field // what the answer has instead of a resource, or beside it
	list     bool           // the answer is a page of out
	status   int            // of success
	ifMatch  bool           // needs the version that the caller saw
	moneyKey bool           // needs an idempotency key

	read  func(ctx context.Context, c *call) error
	write func(ctx context.Context, ch *manage.Change, c *call) error
}

func (r *route) pattern() string { return r.method + " " + r.path }

// params are the names of the path's parameters in order.
func (r *route) params() (names []string) {
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// routes are all operations.
func routes() []route {
	var list []route
	for _, r := range manage.Resources() {
		list = append(list, resourceRoutes(r)...)
	}
	return append(list, actionRoutes()...)
}

func resourceRoutes(r *manage.Resource) []route {
	collection := prefix + r.Name
	item := collection + "/{" + strings.Join(r.Key, "}/{") + "}"
	var filters []manage.Field
	for _, f := range r.Filter {
		filters = append(filters, *r.Field(f))
	}
	list := []route{
		{method: "GET", path: collection, roles: r.Read, summary: "List " + words(r.Name), query: filters, out: r, list: true, status: 200, read: listRows(r)},
		{method: "GET", path: item, roles: r.Read, summary: "Read one " + r.Title, out: r, status: 200, read: readRow(r)},
	}
	if r.Make != 0 {
		made := route{method: "POST", path: collection, roles: r.Make, summary: "Make one " + r.Title, in: r.Fields, out: r, status: 201, write: makeRow(r)}
		if r.Name == "applications" {
			made.outputs = []manage.Field{*r.Field("secret")}
		}
		list = append(list, made)
	}
	if r.Edit != 0 {
		list = append(list, route{
			method: "PATCH", path: item, roles: r.Edit, summary: "Change fields of one " + r.Title, in: r.Fields, merge: true, out: r, status: 200, ifMatch: true, write: editRow(r),
		})
	}
	if r.Remove != 0 {
		list = append(list, route{method: "DELETE", path: item, roles: r.Remove, summary: "Remove one " + r.Title, status: 204, ifMatch: true, write: removeRow(r)})
	}
	return list
}

func words(name string) string { return strings.ReplaceAll(name, "-", " ") }

// actionRoutes are the operations that are no plain change of a row.
func actionRoutes() []route {
	name := func(n string) *manage.Resource { return manage.ByName(n) }
	const money = manage.Finance | manage.Admin
	const operate = manage.Operator | manage.Admin
	return []route{
		{
			method: "POST", path: prefix + "accounts/{enterprise}/top-ups", roles: money, summary: "Add money to an account", in: manage.TopUpFields,
			outputs: []manage.Field{*name("entries").Field("enterprise"), *name("entries").Field("amount"), *name("entries").Field("balance")}, status: 201, moneyKey: true, write: topUp,
		},
		{
			method: "PATCH", path: prefix + "accounts/{enterprise}", roles: money, summary: "Change the credit of an account", in: manage.CreditFields, out: name("accounts"), status: 200, ifMatch: true, write: setCredit,
		},
		{
			method: "POST", path: prefix + "applications/{id}/prices", roles: money, summary: "Give an application a price, from now or a later time on", in: manage.PriceFields, out: name("prices"), status: 201, write: setPrice,
		},
		{
			method: "DELETE", path: prefix + "prices/{application}/{version}", roles: money, summary: "Take back a price whose time has not come", status: 204, write: dropPrice,
		},
		{
			method: "POST", path: prefix + "applications/{id}/secret", roles: manage.Admin, summary: "Give an application another secret, shown once; its sessions end", in: manage.SecretFields,
			outputs: []manage.Field{*name("applications").Field("id"), *name("applications").Field("secret")}, status: 201, write: rotate,
		},
		{
			method: "POST", path: prefix + "number-overrides/import", roles: operate, summary: "Import ported numbers, all or none", lines: "number,carrier", outputs: manage.ImportedFields, status: 200, write: importNumbers,
		},
		{
			method: "POST", path: prefix + "opt-outs/import", roles: operate, summary: "Import opted-out numbers, all or none", lines: "number", query: manage.OptOutImportFields, outputs: manage.ImportedFields, status: 200, write: importOptOuts,
		},
		{
			method: "POST", path: prefix + "dead-letters/{id}/replay", roles: operate, summary: "Offer a dead receipt or uplink to its customer anew", status: 204, write: replay,
		},
		{
			method: "POST", path: prefix + "unmatched-uplinks/{event_id}/rematch", roles: operate, summary: "Look again whose an uplink is", status: 204, write: unmatched((*manage.Change).RematchUplink),
		},
		{
			method: "POST", path: prefix + "unmatched-uplinks/{event_id}/discard", roles: operate, summary: "Take an uplink off the list of those that are nobody's", status: 204, write: unmatched((*manage.Change).DiscardUplink),
		},
		{
			method: "POST", path: prefix + "review-holds/approve", roles: operate, summary: "Let held messages pass", in: manage.DecideFields, outputs: manage.DecidedFields, status: 200, write: decide(true),
		},
		{
			method: "POST", path: prefix + "review-holds/reject", roles: operate, summary: "Refuse held messages; their money is released", in: manage.DecideFields, outputs: manage.DecidedFields, status: 200, write: decide(false),
		},
		{
			method: "POST", path: prefix + "tokens", roles: manage.Admin, summary: "Make a token; it is shown once", in: manage.TokenFields, out: name("tokens"), outputs: []manage.Field{manage.TokenField}, status: 201, write: makeToken,
		},
		{
			method: "DELETE", path: prefix + "tokens/{id}", roles: manage.Admin, summary: "Revoke a token at once", status: 204, write: revokeToken,
		},
	}
}
