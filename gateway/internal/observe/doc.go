// Package observe is what people and machines see of a running gateway: the log, the metrics registry, the gauges of the
// connection pools, and the HTTP server with /healthz, /readyz, /metrics and the profiler.
//
// It imports prometheus, and of this module config and store. The server's goroutines belong to Server.Run, which waits for
// them and stops with its context.
package observe
