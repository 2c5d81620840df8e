package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
)

// version is set by the linker for releases.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands is the command line.
type commands struct {
	File []string `help:"Further scenario files; a name in a later one wins." type:"path" placeholder:"FILE"`

	List   listCommand   `cmd:"" help:"List the scenarios."`
	Check  checkCommand  `cmd:"" help:"Validate the scenario files and print the arithmetic."`
	Run    runCommand    `cmd:"" help:"Run a scenario against the gateway binary."`
	Verify verifyCommand `cmd:"" help:"Run the checkers again on a stored run."`
	Report reportCommand `cmd:"" help:"Render the pages of a stored run again."`
}

// program is what a command runs in.
type program struct {
	ctx    context.Context //nolint:containedctx // handed to the one command that runs
	cli    *commands
	stdout io.Writer
	stderr io.Writer
}

// verdictError is a run that did not pass; everything about it has been printed.
type verdictError struct{ verdict result.Verdict }

func (e *verdictError) Error() string { return string(e.verdict) }

// run is the program apart from the process: it returns the exit code and has
// printed every error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli commands
	helped := false
	parser, err := kong.New(&cli, kong.Name("scenarios"), kong.Description("Runs the gateway under load and proves what it did."),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }))
	if err != nil {
		return failed(stderr, err)
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return 0
	case err != nil:
		return failed(stderr, err)
	}
	return failed(stderr, command.Run(&program{ctx: ctx, cli: &cli, stdout: stdout, stderr: stderr}))
}

// failed prints err, a list of faults on a line each, and gives its exit code.
func failed(stderr io.Writer, err error) int {
	if err == nil {
		return result.VerdictPass.ExitCode()
	}
	if verdict, ok := errors.AsType[*verdictError](err); ok {
		return verdict.verdict.ExitCode()
	}
	if faults, ok := errors.AsType[spec.FaultsError](err); ok {
		for _, f := range faults {
			fmt.Fprintln(stderr, "scenarios:", f.String())
		}
		return result.VerdictBadFile.ExitCode()
	}
	fmt.Fprintln(stderr, "scenarios:", strings.Join(strings.Fields(err.Error()), " "))
	return result.VerdictBadFile.ExitCode()
}
