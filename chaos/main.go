package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"cmppgateway/chaos/fault"
)

// Exit codes.
const (
	exitDone = iota
	exitUnproved
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type commands struct {
	Kill killCommand `cmd:"" help:"Kill a process (SIGKILL)."`
	Stop stopCommand `cmd:"" help:"Stop a process (SIGSTOP) for a while."`
}

type target struct {
	PID   int  `help:"The process." required:""`
	Group bool `help:"Its whole process group."`
}

type killCommand struct{ target }

type stopCommand struct {
	target
	For time.Duration `help:"How long; with its unit." default:"10s"`
}

// Run kills; kong calls it.
func (c *killCommand) Run(ctx context.Context, stdout io.Writer) error {
	f, err := fault.Kill(c.PID, c.Group)
	if err != nil {
		return err
	}
	return schedule(ctx, stdout, f, 0)
}

// Run stops and continues; kong calls it.
func (c *stopCommand) Run(ctx context.Context, stdout io.Writer) error {
	f, err := fault.Stop(c.PID, c.Group)
	if err != nil {
		return err
	}
	return schedule(ctx, stdout, f, c.For)
}

func schedule(ctx context.Context, stdout io.Writer, f fault.Fault, hold time.Duration) error {
	return fault.Run(ctx, f, hold, func(s fault.Step) {
		fmt.Fprintf(stdout, "%s %s %s\n", s.At.UTC().Format("15:04:05.000"), f.Name(), s.What)
	})
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	helped := false
	parser, err := kong.New(&commands{}, kong.Name("chaos"), kong.Description("Injects one fault and takes it back."),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(stdout, (*io.Writer)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return exitDone
	case err != nil:
		fmt.Fprintln(stderr, "chaos:", err)
		return exitUsage
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return exitUnproved
	}
	return exitDone
}
