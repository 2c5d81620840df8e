package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"cmppgateway/reports/render"
	"cmppgateway/reports/result"
)

const exitUsage = 2

func main() {
	switch err := run(os.Args[1:], os.Stdout); {
	case err == nil, errors.Is(err, errHelp):
	default:
		fmt.Fprintln(os.Stderr, "reports:", err)
		os.Exit(exitUsage)
	}
}

// errHelp ends a run that was asked only for help.
var errHelp = errors.New("help shown")

type commands struct {
	Render renderCommand `cmd:"" help:"Write report.html, report.md and junit.xml of a run directory."`
}

type renderCommand struct {
	Dir string `arg:"" type:"existingdir" help:"A run directory: the one with report.json."`
}

// Run renders the directory; kong calls it.
func (c *renderCommand) Run(stdout io.Writer) error {
	run, err := render.Dir(c.Dir)
	if err != nil {
		return err
	}
	if err := render.Terminal(stdout, &run.Report); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\n%s\n", filepath.Join(c.Dir, result.HTMLFile))
	return err
}

// run is the program apart from the process: it parses args and writes to stdout.
func run(args []string, stdout io.Writer) error {
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("reports"),
		kong.Description("Renders the reports of stored scenario runs."),
		kong.Writers(stdout, stdout),
		kong.Exit(func(int) { helped = true }),
		kong.BindTo(stdout, (*io.Writer)(nil)),
	)
	if err != nil {
		return err
	}
	ctx, err := parser.Parse(args)
	if helped {
		return errHelp
	}
	if err != nil {
		return err
	}
	return ctx.Run()
}
