// Package failpoint ends or delays the process at named points, so that tests can kill it exactly there (scenarios A4). It is
// in the binary only with the build tag "failpoint" (`make failpoint` builds bin/gateway-failpoint); without it Hit is empty
// and is inlined away.
//
//	FAILPOINT=after_barrier:20     SIGKILL at the 20th pass after the process got SIGUSR1
//	FAILPOINT=after_barrier:300us  every pass takes so much longer, from the start
package failpoint
