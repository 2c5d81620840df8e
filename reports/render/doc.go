// Package render turns one run directory into pages for people and machines: a
// self-contained HTML page, the same in Markdown for a build log, JUnit XML and a
// plain-text summary for the terminal.
//
// Every renderer reads one [page] built from a [result.Run], so the four say the
// same. Rendering is a pure function of the directory: no clock, no locale, no
// network, the same octets every time. The HTML carries its style and its charts
// (inline SVG drawn here), needs no script, and refuses everything else by its
// content security policy. All strings of a run are treated as hostile text.
//
// It imports the standard library and reports/result; it starts no goroutine.
package render
