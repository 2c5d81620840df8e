// Program chaos injects one fault by hand and takes it back:
//
//	chaos kill --pid 4711            # SIGKILL; cannot be taken back
//	chaos stop --pid 4711 --for 10s  # SIGSTOP, then SIGCONT
//	chaos stop --pid 4711 --group    # every process of its group
//
// Each fault is verified from the other side (the kernel's record of the process,
// not the sender's word) after it was injected and after it was taken back. An
// interrupt takes a stop back before the program ends. It exits 0 when both were
// proved, 1 when one was not, 2 for a wrong command line.
//
// It imports chaos/fault and the command-line parser.
package main
