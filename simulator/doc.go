// Command simulator plays the two ends of the gateway: suppliers that take
// SUBMITs and send status reports (package ismg), and customers that offer load
// (package sp). `simulator serve --profile FILE` runs what a profile says until
// a signal or the profile's duration, prints one summary line and can write the
// suppliers' daily statement. Scenarios use the packages directly.
//
// The program may import its own packages, kong, and nothing of the gateway;
// the packages below build frames with gateway/cmpp but read them with
// simulator/internal/wire. The first signal ends a run in order (customers,
// then suppliers); a second one ends the process at once. Exit codes: 0 done,
// 1 the run failed, 2 bad input.
package main
