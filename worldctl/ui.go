package worldctl

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/serve/api"
)

// looker is somebody who looks at worlds in a browser.
type looker struct {
	sessions api.Sessions
	line     api.TokenLine
	stay     bool   // no browser is opened
	file     string // that leads a browser here; empty: there is none
}

func newUICommand(c *cli) *cobra.Command {
	var s serving
	var scopes []string
	var look looker
	cmd := &cobra.Command{
		Use: "ui [DIR...]",
		RunE: func(cmd *cobra.Command, dirs []string) error {
			for _, name := range scopes {
				look.line.Scopes = append(look.line.Scopes, api.Scope(name))
			}
			look.line.Name = c.actorOf("")
			if err := look.check(); err != nil {
				return err
			}
			s.look = &look
			defer look.forget()
			return c.serve(cmd.Context(), &s, dirs)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.addr, "addr", "127.0.0.1:0", "listen on this `HOST:PORT` of this machine; port 0 is any free one")
	f.StringSliceVar(&scopes, "scope", []string{"read", "submit", "approve", "admin"}, "what you may do there: `SCOPE,...`")
	s.addForks(f)
	f.BoolVar(&look.stay, "no-browser", false, "open no browser; print the code")
	f.BoolVar(&s.manual, "manual", false, "let the worlds stand still until you step them")
	c.addBounds(cmd)
	return cmd
}

// check says what is wrong with the scopes that were typed.
func (l *looker) check() error {
	if _, err := new(api.Sessions).Invite(l.line); err != nil {
		return usagef("type --scope read, or others of worldctl token new --help", "--scope: %w", err)
	}
	return nil
}

// openBrowser leads a browser to the worlds.
func (l *looker) openBrowser(ctx context.Context, c *cli, url string) error {
	code, err := l.sessions.Invite(l.line)
	if err != nil {
		return err
	}
	page := url + "/ui/"
	if l.stay {
		fmt.Fprintf(c.stderr, "page: %s\ncode, good once and for a minute: %s\n", page, code)
		return nil
	}
	if l.file, err = leadFile(page + "#code=" + code); err != nil {
		return err
	}
	if err := openFile(ctx, l.file); err != nil {
		fmt.Fprintf(c.stderr, "no browser was opened (%v): open %s in one within a minute\n", err, l.file)
	}
	return nil
}

// forget removes the file.
func (l *looker) forget() {
	if l.file != "" {
		_ = os.RemoveAll(filepath.Dir(l.file)) // what is left of it is good for nothing
	}
}

// leadFile writes a page of the user's own that leads to a URL: arguments of a program
// can be read by others, the file cannot.
func leadFile(url string) (string, error) {
	dir, err := os.MkdirTemp("", "worldctl-ui-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "look.html")
	text := `<!DOCTYPE html><meta charset="utf-8"><title>worldkernel</title><meta http-equiv="refresh" content="0; url=` +
		html.EscapeString(url) + `"><p><a href="` + html.EscapeString(url) + `">to the page</a>` + "\n"
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// openFile has the user's browser open a file.
func openFile(ctx context.Context, file string) error {
	words := []string{"xdg-open"}
	switch {
	case os.Getenv("BROWSER") != "":
		words = strings.Fields(os.Getenv("BROWSER"))
	case runtime.GOOS == "darwin":
		words = []string{"open"}
	case runtime.GOOS == "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), words[0], append(words[1:], file)...) //nolint:gosec // the user's own browser
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // what becomes of it is the user's to see
	return nil
}
