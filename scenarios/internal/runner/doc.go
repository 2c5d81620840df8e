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
// Scheduled faults strike beside the load: journal, inject, prove, hold, revert,
// prove, and wait for the supplier connections. One that was not proved, or met too
// few SUBMITs on their way, is a verdict on the environment; a gateway that does not
// come back is its own failure. A second life of the gateway has the configuration
// and the ports of the first; what its counters say is of the second life alone.
//
// It imports scenarios/internal/{spec,load,verify}, simulator, reports, chaos/fault
// and testenv/stack, and nothing of the gateway's internals: files, commands and
// HTTP are the only ways in. Its goroutines (customers, suppliers, the sampler, the
// hiccup meter, progress, the schedule of faults, one per child) belong to the run and have ended when Run
// returns.
package runner
