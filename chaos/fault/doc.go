// Package fault injects faults into processes, takes them back, and proves both.
//
// A Fault never vouches for itself: Verify asks the other side, here the kernel's
// record of the process in /proc. Run does the whole order: inject, verify, hold,
// revert, verify. Whatever happens in between, also the end of the context, what
// was injected is reverted before Run returns.
//
// It imports the standard library and relies on Linux; it starts no goroutine.
package fault
