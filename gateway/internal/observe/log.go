package observe

import (
	"io"
	"log/slog"

	"cmppgateway/gateway/internal/config"
)

// Logger writes to w in the configured format from the configured level on. c is valid (config.Validate).
func Logger(w io.Writer, c config.Log) *slog.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[c.Level]
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inUTC}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// inUTC makes every time of a line UTC, whatever the zone of the process: lines of several machines are read side by side.
func inUTC(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
