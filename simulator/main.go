package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"cmppgateway/simulator/internal/profile"
	"cmppgateway/simulator/internal/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal has its default effect
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "simulator:", err)
	if _, bad := errors.AsType[*inputError](err); bad {
		os.Exit(2)
	}
	os.Exit(1)
}

// inputError is a mistake of the caller, not of the run.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

type commands struct {
	Serve struct {
		Profile     string `help:"Profile file (YAML)." placeholder:"FILE" required:""`
		Statement   string `help:"Write the suppliers' daily statement (CSV) here at the end." placeholder:"FILE"`
		AllowRemote bool   `help:"Allow addresses that are not loopback."`
		LogLevel    string `default:"info" enum:"debug,info,warn,error" help:"One of ${enum}."`
	} `cmd:"" help:"Run the suppliers, and the customers if there are any, of a profile."`
}

// run is the program without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var cmd commands
	helped := false
	parser, err := kong.New(&cmd,
		kong.Name("simulator"),
		kong.Description("Simulated SMS suppliers and customers speaking CMPP 2.0 and 3.0."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
	)
	if err != nil {
		return fmt.Errorf("command line: %w", err)
	}
	if _, err := parser.Parse(args); helped {
		return nil
	} else if err != nil {
		return &inputError{err}
	}
	options := &cmd.Serve
	file, err := load(options.Profile, options.AllowRemote)
	if err != nil {
		return &inputError{err}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(options.LogLevel)); err != nil {
		return &inputError{err}
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	summary, err := serve.Run(ctx, &file, serve.Options{
		Statement: options.Statement,
		Log:       log,
		Listening: func(suppliers, http string) {
			fmt.Fprintf(stdout, "listening suppliers=%s http=%s\n", suppliers, http)
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, summary)
	return nil
}

func load(path string, allowRemote bool) (profile.File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return profile.File{}, err
	}
	file, err := profile.Parse(data)
	if problems, ok := errors.AsType[profile.ProblemsError](err); ok {
		lines := make([]string, len(problems))
		for i := range problems {
			lines[i] = path + ":" + problems[i].String()
		}
		return profile.File{}, errors.New(strings.Join(lines, "; "))
	}
	if err != nil {
		return profile.File{}, err
	}
	if remote := file.Remote(); len(remote) > 0 && !allowRemote {
		return profile.File{}, fmt.Errorf("%s: %s is not loopback; --allow-remote permits it", path, strings.Join(remote, ", "))
	}
	return file, nil
}
