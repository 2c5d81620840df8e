// Package admin is the admin API: what package manage declares and does, over HTTP. One table of routes is what the server
// runs, who may what, and what /openapi.json says. GET /api/admin/effective shows what the process really runs with.
//
// It imports config, manage, settings, store and wake of this module, and go-redis. It starts no goroutine; its handlers
// run under the server of package observe.
package admin
