package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"cmppgateway/reports/render"
	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/runner"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/testenv/stack"
)

// catalogueFile is the catalogue's name at the root of the tree.
const catalogueFile = "scenarios.yaml"

// catalogue loads scenarios.yaml, of the working directory or beside the program's
// bin/, and the files named.
func (p *program) catalogue() (*spec.Catalogue, error) {
	var paths []string
	for _, path := range []string{catalogueFile, filepath.Join(beside(".."), catalogueFile)} {
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("scenario file: %w", err)
		}
	}
	paths = append(paths, p.cli.File...)
	if len(paths) == 0 {
		return nil, fmt.Errorf("no %s here, and no --file", catalogueFile)
	}
	return spec.Load(paths...)
}

// beside is a path next to this program.
func beside(name string) string {
	own, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(own), name)
}

type listCommand struct{}

// Run lists; kong calls it.
func (listCommand) Run(p *program) error {
	c, err := p.catalogue()
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	for _, name := range c.Names() {
		s, err := c.Scenario(name, nil)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.stdout, "%-24s %s\n", name, s.About); err != nil {
			return err
		}
	}
	return nil
}

type checkCommand struct {
	Name string   `arg:"" optional:"" help:"One scenario; without it all of them."`
	Set  []string `help:"Change one value for this run, as in gateway.supplier.barrier_rate=100." placeholder:"PATH=VALUE" sep:"none"`
}

// Run validates; kong calls it.
func (c *checkCommand) Run(p *program) error {
	all, err := p.catalogue()
	if err != nil {
		return err
	}
	names := all.Names()
	if c.Name != "" {
		names = []string{c.Name}
	} else if err := all.Check(); err != nil {
		return err
	}
	for _, name := range names {
		s, err := all.Scenario(name, c.Set)
		if err != nil {
			return err
		}
		if err := s.Explain(p.stdout); err != nil {
			return err
		}
	}
	return nil
}

type runCommand struct {
	Name        string   `arg:"" help:"The scenario."`
	Set         []string `help:"Change one value for this run, as in gateway.supplier.barrier_rate=100." placeholder:"PATH=VALUE" sep:"none"`
	Gateway     string   `help:"The gateway program; without it the one beside this program." type:"path" placeholder:"FILE"`
	Runs        string   `help:"Directory for run directories." default:"runs" type:"path"`
	Stack       string   `help:"Where PostgreSQL and Redis come from: ${enum}; empty as TESTENV_MODE says, else auto." enum:",auto,urls,containers,processes" default:""`
	AllowRemote bool     `help:"Allow PostgreSQL and Redis that are not on this machine."`
	Verbose     bool     `help:"Log what the harness does." short:"v"`
}

// Run runs; kong calls it.
func (c *runCommand) Run(p *program) error {
	all, err := p.catalogue()
	if err != nil {
		return err
	}
	s, err := all.Scenario(c.Name, c.Set)
	if err != nil {
		return err
	}
	level := slog.LevelWarn
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
	o := runner.Options{
		Scenario: s, Gateway: c.Gateway, Given: c.Gateway != "", Runs: c.Runs, Stack: stack.Options{Mode: c.Stack, Log: log}, AllowRemote: c.AllowRemote,
		Progress: p.stderr, Log: log, Version: version,
	}
	if o.Gateway == "" {
		o.Gateway = beside("gateway")
		if s.Needs(spec.GatewayFailpoint) {
			o.Gateway = beside("gateway-failpoint")
		}
	}
	if f, ok := p.stderr.(*os.File); ok {
		o.TTY = runner.IsTerminal(f) && !c.Verbose
	}
	done, err := runner.Run(p.ctx, o)
	if err != nil {
		return err
	}
	return p.conclude(done.Dir, done.Report)
}

// conclude prints the summary, the exit code and the report's path, in that order,
// and returns what did not pass as an error.
func (p *program) conclude(dir string, r *result.Report) error {
	if err := render.Terminal(p.stdout, r); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.stdout, "\nexit %d %s\n%s\n", r.Verdict.ExitCode(), r.Verdict, filepath.Join(dir, result.HTMLFile)); err != nil {
		return err
	}
	if r.Verdict != result.VerdictPass {
		return &verdictError{r.Verdict}
	}
	return nil
}

type verifyCommand struct {
	Dir string `arg:"" type:"existingdir" help:"A run directory: the one with history.bin."`
}

// Run checks a stored run again; kong calls it.
func (c *verifyCommand) Run(p *program) error {
	w, err := verify.Load(c.Dir)
	if err != nil {
		return err
	}
	ok := true
	line := func(status result.Status, name, enterprise, text string) error {
		ok = ok && status.OK()
		_, err := fmt.Fprintf(p.stdout, "%-14s %-22s %-12s %s\n", status, name, enterprise, text)
		return err
	}
	for _, x := range verify.Identities(w) {
		if err := line(x.Status, x.ID, x.Enterprise, fmt.Sprintf("%d = %d (%d and %d items) %s", x.Left, x.Right, x.NLeft, x.NRight, x.Detail)); err != nil {
			return err
		}
	}
	for _, x := range verify.Checks(w) {
		text := fmt.Sprintf("%d and %d items, %d violations %s", x.NLeft, x.NRight, x.Count, strings.Join(x.Offenders, "; "))
		if err := line(x.Status, x.ID, "", text); err != nil {
			return err
		}
	}
	if !ok {
		return &verdictError{result.VerdictViolated}
	}
	return nil
}

type reportCommand struct {
	Dir string `arg:"" type:"existingdir" help:"A run directory: the one with report.json."`
}

// Run renders a stored run again; kong calls it.
func (c *reportCommand) Run(p *program) error {
	run, err := render.Dir(c.Dir)
	if err != nil {
		return err
	}
	err = p.conclude(c.Dir, &run.Report)
	if _, judged := errors.AsType[*verdictError](err); judged {
		return nil // the pages were written, whatever they say
	}
	return err
}
