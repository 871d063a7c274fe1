package worldctl

import (
	"context"
	"log/slog"
)

// serviceLog is what a service writes to stderr.
type serviceLog struct {
	*slog.Logger

	requests *slog.Logger // for a line about every request
}

// logger returns the log of a service: text, or JSON lines where that is wanted.
func (c *cli) logger() serviceLog {
	var h slog.Handler = slog.NewTextHandler(c.stderr, nil)
	if c.output != formTable {
		h = slog.NewJSONHandler(&door{to: c.rawErr, json: func() bool { return true }}, nil)
	}
	own, requests := slog.LevelInfo, slog.LevelWarn
	switch {
	case c.quiet:
		own, requests = slog.LevelError, slog.LevelError
	case c.verbose:
		requests = slog.LevelInfo
	}
	log := serviceLog{Logger: slog.New(above{h, own}), requests: slog.New(above{h, requests})}
	c.opts.interrupts.tell(func(text string) { log.Warn(text) })
	return log
}

// above writes what has at least a level. Two of them can share a Handler, whose
// lines do not mix.
type above struct {
	slog.Handler

	least slog.Level
}

// Enabled implements slog.Handler.
func (a above) Enabled(_ context.Context, level slog.Level) bool { return level >= a.least }

// WithAttrs implements slog.Handler.
func (a above) WithAttrs(attrs []slog.Attr) slog.Handler {
	return above{a.Handler.WithAttrs(attrs), a.least}
}

// WithGroup implements slog.Handler.
func (a above) WithGroup(name string) slog.Handler { return above{a.Handler.WithGroup(name), a.least} }
