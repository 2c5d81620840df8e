// Program scenarios proves what the gateway does under load: it runs a named
// scenario of the catalogue against the real binary between simulated customers
// and suppliers, and checks the books from independent records.
//
//	scenarios list
//	scenarios check [NAME]        # validate, and print the arithmetic
//	scenarios run NAME            # writes runs/NAME/<utc time>/
//	scenarios verify DIR          # the checkers again on a stored run
//	scenarios report DIR          # the pages again of a stored run
//
// The catalogue is scenarios.yaml of the working directory, or of the tree the
// program was built in; --file adds files. --set changes one value of a scenario
// for a run.
//
// It exits 0 pass, 2 bad file or command line, 3 objective missed, 4 identity or
// check violated, 5 regression, 6 invalid measurement, 7 environment, 8 aborted.
// The last line of standard output is the path of the report; progress goes to
// standard error. A first interrupt ends a run in order, with a report.
//
// It imports scenarios/internal, reports and testenv/stack, and nothing of the
// gateway's internals.
package main
