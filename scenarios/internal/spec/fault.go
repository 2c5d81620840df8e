package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a scenario file or an override.
type Fault struct {
	// Source is the file, or "--set PATH" for an override.
	Source string
	// Line and Column count from 1; 0 when there is no place to point at.
	Line, Column int
	// Path of the value, such as scenarios.smoke.phases[0].hold.
	Path    string
	Problem string
}

func (f Fault) String() string {
	place := f.Source
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", f.Source, f.Line, f.Column)
	}
	if f.Path == "" {
		return place + ": " + f.Problem
	}
	return place + ": " + f.Path + ": " + f.Problem
}

// FaultsError is everything found wrong, in the order of the file.
type FaultsError []Fault

func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders by place and drops repetitions, which come from one set of
// defaults being resolved for several scenarios.
func (f FaultsError) sorted() FaultsError {
	slices.SortStableFunc(f, func(a, b Fault) int {
		if c := strings.Compare(a.Source, b.Source); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.CompactFunc(f, func(a, b Fault) bool {
		return a.Source == b.Source && a.Line == b.Line && a.Column == b.Column && a.Problem == b.Problem && a.section() == b.section()
	})
}

// section is the path within its scenario.
func (f Fault) section() string {
	if rest, ok := strings.CutPrefix(f.Path, "scenarios."); ok {
		_, section, _ := strings.Cut(rest, ".")
		return section
	}
	return f.Path
}

// UnknownError is a scenario that no file names.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no scenario %q; there are: %s", e.Name, strings.Join(e.Known, ", "))
}
