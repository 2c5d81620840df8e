// Program reports renders a stored run again: it reads the files of a run directory
// and writes report.html, report.md and junit.xml beside them.
//
//	reports render runs/dual-enterprise-200/latest
//
// It prints the summary for the terminal and, as its last line, the path of the
// page. It exits 0 when the pages were written, whatever the verdict they show, and
// 2 when the directory cannot be read or written, or the command line is wrong.
//
// It imports only reports/render and reports/result and the command-line parser; it
// starts no goroutine, so there is nothing to stop.
package main
