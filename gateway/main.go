package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/seed"
)

// version is set by the linker for releases.
var version = "dev"

// Exit codes.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// commands is the command line.
type commands struct {
	Config string `help:"Configuration file (YAML); without it the defaults and the environment." short:"c" type:"path" placeholder:"FILE"`

	Serve   serveCommand   `cmd:"" help:"Run the gateway."`
	Migrate migrateCommand `cmd:"" help:"Bring the database schema up to date."`
	Check   checkCommand   `cmd:"" help:"Compare configuration, database, Redis and clocks with what the gateway needs."`
	Seed    seedCommand    `cmd:"" help:"Write settings and opening balances from a file."`
	Ledger  struct {
		Verify verifyCommand `cmd:"" help:"Recompute all money from its entries."`
	} `cmd:"" help:"The books."`
	Unknown struct {
		List    unknownListCommand    `cmd:"" help:"List submits that may have been sent and were not answered."`
		Resolve unknownResolveCommand `cmd:"" help:"Close them by a supplier's statement, or by what an operator knows."`
	} `cmd:"" help:"Submits without an answer."`
	Exceptions exceptionsCommand `cmd:"" help:"List what contradicts what is settled, or needs a person."`
	Reconcile  reconcileCommands `cmd:"" help:"Suppliers' daily statements against our submits."`
	Dead       deadCommands      `cmd:"" help:"What could not be used and was kept."`
	Uplink     uplinkCommands    `cmd:"" help:"Messages from phones that are nobody's."`
	Callback   callbackCommands  `cmd:"" help:"The way of events from edges to the core."`
	Recover    recoverCommand    `cmd:"" help:"End the quarantine after a restore: what may have been sent becomes unknown."`
	App        appCommands       `cmd:"" help:"Customers' applications."`
	Doctor     doctorCommand     `cmd:"" help:"Say what is wrong with a customer's account, and what to do."`
	Token      tokenCommands     `cmd:"" help:"Tokens of the admin API."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// program is what a command runs in.
type program struct {
	ctx    context.Context //nolint:containedctx // handed to the one command that runs
	cut    context.Context //nolint:containedctx // done at the second signal: stop at once
	config config.Config
	stdout io.Writer
	stderr io.Writer
}

func main() {
	if err := failpoint.Arm(); err != nil {
		os.Exit(failed(os.Stderr, exitUsage, err))
	}
	ctx, cut, stop := signals(again)
	code := run(ctx, cut, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// die ends the process at once: nothing is drained, flushed or answered.
func die() { os.Exit(exitFailed) }

// run is the program without the process: it returns the exit code and has printed every error.
func run(ctx, cut context.Context, args, environ []string, stdout, stderr io.Writer) int {
	var cli commands
	parser, err := kong.New(&cli, kong.Name("gateway"), kong.Description("CMPP SMS gateway."), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(helpShown(code)) }))
	if err != nil {
		return failed(stderr, exitFailed, err)
	}
	command, code, err := parse(parser, args)
	if err != nil || command == nil {
		return failed(stderr, code, err)
	}
	p := &program{ctx: ctx, cut: cut, stdout: stdout, stderr: stderr}
	if _, ok := reflect.TypeAssert[versionCommand](command.Selected().Target); !ok {
		if p.config, err = config.Load(cli.Config, environ); err != nil {
			return failed(stderr, exitUsage, err)
		}
	}
	if err := command.Run(p); err != nil {
		if errors.Is(err, errUsage) {
			return failed(stderr, exitUsage, err)
		}
		return failed(stderr, exitFailed, err)
	}
	return exitDone
}

// errUsage marks errors in what the caller gave: a file, a flag.
var errUsage = errors.New("usage")

type helpShown int

// parse reads the command line. kong ends the process after --help; here that is a nil command.
func parse(parser *kong.Kong, args []string) (command *kong.Context, code int, err error) {
	defer func() {
		if r := recover(); r != nil {
			shown, ok := r.(helpShown)
			if !ok {
				panic(r)
			}
			command, code, err = nil, int(shown), nil
		}
	}()
	command, err = parser.Parse(args)
	return command, exitUsage, err
}

// failed prints err on a line, a list of faults on a line each.
func failed(stderr io.Writer, code int, err error) int {
	if err == nil {
		return code
	}
	if faults, ok := errors.AsType[config.FaultsError](err); ok {
		for _, f := range faults {
			fmt.Fprintln(stderr, "gateway:", f) // nowhere else to say it
		}
		return code
	}
	if faults, ok := errors.AsType[seed.FaultsError](err); ok {
		for _, f := range faults {
			fmt.Fprintln(stderr, "gateway:", f) // nowhere else to say it
		}
		return code
	}
	fmt.Fprintln(stderr, "gateway:", oneLine(err)) // nowhere else to say it
	return code
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
