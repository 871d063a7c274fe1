package worldctl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/ui"
	"github.com/worldkernel/worldkernel/world/local"
)

// serving says how worlds are served.
type serving struct {
	addr   string
	tokens string // the token file; empty: one token is made
	hosts  []string
	limits []string // NAME=N
	forks  string   // the directory in which forks are made; empty: none are
	manual bool
	remote bool
	trust  string // the trust file; empty: see trusts
	page   bool   // also where other machines reach it
	notify notifying
	idle   time.Duration // after which a node lets go of a world that rests
	look   *looker       // somebody looks at the worlds in a browser; nil: whoever asks has a token
}

// serveAnswer says where the worlds are.
type serveAnswer struct {
	URL    string        `json:"url"`
	Worlds []servedWorld `json:"worlds"`
}

type servedWorld struct {
	ID  string `json:"id"`
	Dir string `json:"dir"`
}

func newServeCommand(c *cli) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:     "serve [DIR...]",
		PreRunE: func(*cobra.Command, []string) error { return checkWorkers("serve", c.workers) },
		RunE:    func(cmd *cobra.Command, dirs []string) error { return c.serve(cmd.Context(), &s, dirs) },
	}
	f := cmd.Flags()
	s.addDoor(f)
	s.addForks(f)
	s.notify.add(f)
	f.BoolVar(&s.manual, "manual", false, "let the worlds stand still but for POST .../step")
	f.BoolVar(&s.page, "ui", false, "serve the page also where other machines reach it")
	c.addNode(f, &s.idle)
	f.StringVar(&s.trust, "trust", "", "`FILE` that says which effects are performed for the worlds, see above")
	f.BoolVar(&s.remote, "remote-workers", false, "let workers elsewhere perform live effects, over the API")
	c.addBounds(cmd)
	f.IntVar(&c.workers, "workers", 0, "perform at most `N` effects at once; 0 is the host's default")
	c.memoryFlag(cmd)
	return cmd
}

// addDoor adds the flags about where the server listens, to whom, and to how much at once.
func (s *serving) addDoor(f *pflag.FlagSet) {
	f.StringVar(&s.addr, "addr", "127.0.0.1:0", "listen on this `HOST:PORT`; port 0 is any free one")
	f.StringVar(&s.tokens, "token-file", "", "`FILE` of the tokens that are taken, see worldctl token")
	f.StringArrayVar(&s.hosts, "allow-host", nil, "`HOST` or HOST:PORT by which clients may call this server, as they write it; can be repeated")
	f.StringArrayVar(&s.limits, "limit", nil, "`NAME=N` sets a limit of how much is under way at once; can be repeated")
}

func (s *serving) addForks(f *pflag.FlagSet) {
	f.StringVar(&s.forks, "forks", "", "make forks that are asked for over HTTP in this `DIR`; without it none are")
}

// serve serves worlds until ctx or all of them end.
func (c *cli) serve(ctx context.Context, s *serving, typed []string) error {
	if c.owned != nil {
		return errBesides
	}
	dirs, err := c.servedDirs(typed)
	if err != nil {
		return err
	}
	addr, err := s.resolve()
	if err != nil {
		return err
	}
	cfg, secret, err := c.serverConfig(s)
	if err != nil {
		return err
	}
	if s.page || addr.IP.IsLoopback() {
		cfg.Page = ui.Handler()
	}
	if s.tokens != "" {
		c.opts.interrupts.leave(syscall.SIGHUP)
	}
	log := c.logger()
	cfg.Log = log.requests
	v := &api.Service{
		Config:  cfg,
		Options: c.options(), Manual: s.manual, Events: log.Logger, TokenFile: s.tokens,
		Attend: func(ctx context.Context, lw *local.World) (func(), error) { return attend(ctx, lw, c.opts) },
		Hint:   func(err error) string { _, hint := judge(err); return c.inWorld(hint) },
	}
	v.Options.Remote = s.remote
	if err := c.trusts(v, s); err != nil {
		return err
	}
	if err := c.placeAll(v, s, dirs); err != nil {
		return err
	}
	if err := c.notifies(v, s); err != nil {
		return err
	}
	v.Serving = func(url string) error {
		if err := c.announce(v, log, url); err != nil || s.look == nil {
			return err
		}
		return s.look.openBrowser(ctx, c, url)
	}
	if err := c.unlocked(func() error { return v.Open(ctx, dirs...) }, func() bool { return false }); err != nil {
		return c.notServed(err, typed)
	}
	for _, w := range v.Worlds() {
		if text := otherSource(w.Local); text != "" {
			log.Warn(text, "world", w.ID)
		}
	}
	c.showToken(secret)
	ended, err := untilTerm(ctx, func() error { return s.listen(ctx, v, addr) })
	if err = errors.Join(err, v.Close(), v.Failed()); err != nil {
		return err
	}
	return ended
}

// trusts says what is performed for the worlds. Who starts it on directories has seen what they do. What comes later over
// HTTP, or is in a store that others write to, nobody has.
func (c *cli) trusts(v *api.Service, s *serving) (err error) {
	v.Options.Trust, err = readTrust(s.trust)
	v.Options.TrustFound = s.trust == "" && c.storeURL() == ""
	return err
}

// notServed says which world was not opened, and why.
func (c *cli) notServed(err error, typed []string) error {
	var at *api.OpenError
	if !errors.As(err, &at) {
		return err
	}
	if len(typed) > 0 {
		c.world = at.Dir // for the hint
	}
	return notOpened(at.Dir, err)
}

// listen serves on an address. SIGHUP has the tokens read again.
func (s *serving) listen(ctx context.Context, v *api.Service, addr *net.TCPAddr) error {
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return hinted(err, "type --addr with another HOST:PORT; port 0 is any free one")
	}
	if s.tokens != "" {
		again := make(chan os.Signal, 1)
		signal.Notify(again, syscall.SIGHUP)
		defer signal.Stop(again)
		v.Again = again
	}
	return v.Serve(ctx, listener)
}

// servedDirs returns the directories of the worlds that are meant.
func (c *cli) servedDirs(typed []string) ([]string, error) {
	switch {
	case len(typed) == 0 && c.storeURL() != "" && c.world == "":
		return nil, nil // a node
	case len(typed) == 0 && len(c.storeURLs()) == 1:
		_, err := c.place(c.world)
		return []string{c.world}, err
	case len(typed) == 0 && c.storeURL() == "":
		dir, err := c.dir()
		return []string{dir}, err
	case len(c.storeURLs()) > 1:
		return nil, usagef("name no world, and it is a node of all of them; or type --store once", "worlds of several stores are served by a node")
	case c.world != "":
		return nil, usagef("type them after the verb, or one with -w", "worlds were named in two ways: -w %s and %s", c.world, strings.Join(typed, " "))
	}
	return typed, nil
}

// resolve returns the address to listen on.
func (s *serving) resolve() (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", s.addr)
	if err != nil {
		return nil, usagef("type --addr 127.0.0.1:8080, or another HOST:PORT", "--addr %s is no HOST:PORT that this machine knows", s.addr)
	}
	if s.look != nil && !addr.IP.IsLoopback() {
		return nil, usagef("worldctl serve --ui --token-file FILE shows the page to whoever has a token", "%s can be reached from other machines: ui is for this one", s.addr)
	}
	if s.tokens == "" && !addr.IP.IsLoopback() {
		return nil, usagef("worldctl token new NAME --scope read --file FILE, then worldctl serve --token-file FILE",
			"%s can be reached from other machines: that takes a --token-file", s.addr)
	}
	return addr, nil
}

// serverConfig returns what was typed about the server. Without a file of tokens it
// makes one token, and returns its secret.
func (c *cli) serverConfig(s *serving) (cfg api.Config, secret string, err error) {
	cfg.AllowedHosts = s.hosts
	if s.forks != "" {
		cfg.Forks = c.path(s.forks)
	}
	for _, text := range s.limits {
		if err := cfg.Limits.Set(text); err != nil {
			var names []string
			for _, x := range cfg.Limits.Named() {
				names = append(names, x.Name)
			}
			return cfg, "", usagef("type --limit NAME=N: the names are "+strings.Join(names, ", "), "--limit %s: %w", text, err)
		}
	}
	if s.look != nil {
		cfg.Sessions = &s.look.sessions
		return cfg, "", nil
	}
	cfg.Tokens, secret, err = c.servedTokens(s.tokens)
	return cfg, secret, err
}

// servedTokens reads the tokens that are taken. Without a file it makes one, and
// returns its secret.
func (c *cli) servedTokens(file string) (tokens *api.Tokens, secret string, err error) {
	if file != "" {
		tokens, err = readTokens(file)
		return tokens, "", err
	}
	secret, hash := api.NewToken()
	tokens, err = api.ParseTokens([]byte(api.TokenLine{Name: c.actorOf(""), Scopes: api.Scopes()}.Text(hash)))
	return tokens, secret, err
}

// showToken prints the token that was made, which is nowhere else; empty: none was.
func (c *cli) showToken(secret string) {
	if secret == "" {
		return
	}
	if c.output == formTable {
		fmt.Fprintf(c.stderr, "token: %s\n", secret)
		return
	}
	fmt.Fprintf(c.stderr, "{\"token\":%q}\n", secret)
}

// announce prints at once where the worlds are.
func (c *cli) announce(v *api.Service, log serviceLog, url string) error {
	a := serveAnswer{URL: url}
	for _, w := range v.Worlds() {
		a.Worlds = append(a.Worlds, servedWorld{ID: w.ID, Dir: w.Local.Dir()})
		log.Info("serving", "world", w.ID, "dir", w.Dir, "url", url+"/api/worlds/"+w.ID)
	}
	err := c.object("serve", a, func() { fmt.Fprintln(c.stdout, a.URL) })
	return errors.Join(err, c.stdout.Flush())
}

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
