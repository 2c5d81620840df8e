// Package admin is the admin API. GET /api/admin/effective shows what the process really runs with.
//
// It imports config, settings and store of this module, and go-redis. It starts no goroutine; its handlers run under the
// server of package observe.
package admin
