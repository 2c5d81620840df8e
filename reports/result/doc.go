// Package result is the on-disk format of one scenario run: the structs of
// report.json, the per-second series.csv, the names of the files in a run
// directory, the verdicts with their exit codes and the status of a check.
//
// It is a leaf: standard library only, no goroutine, no clock, no log. The
// scenarios runner writes a run with [Save]; renderers and re-checkers read it
// back with [Load]. JSON names are stable: a field is added, never renamed, and
// a change of meaning raises [Schema].
//
// A number that could not be measured is null with a reason beside it, never
// NaN and never zero. Money is an integer count of 1/10,000 yuan. Times in
// milliseconds and seconds are floats whose unit is the suffix of their name.
package result
