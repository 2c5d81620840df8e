// Package runner runs one scenario against the real gateway binary and writes its
// report.
//
// The order is fixed: pre-flight, servers, database, migrate, seed, suppliers (in
// this process), gateway (a child of it), settings read back, load in an open
// model, drain by counts, unknowns closed from the suppliers' statement, the
// gateway stopped, witnesses taken at rest, checks, report. Everything that was
// started is stopped by its own id on every way out, also after an error, a signal
// or the run's wall-clock limit; a run that began writes a report whatever
// happened.
//
// It imports scenarios/internal/{spec,load,verify}, simulator, reports, and
// testenv/stack, and nothing of the gateway's internals: files, commands and HTTP
// are the only ways in. Its goroutines (customers, suppliers, the sampler, the
// hiccup meter, progress, one per child) belong to the run and have ended when Run
// returns.
package runner
