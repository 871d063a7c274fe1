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

const serveHelp = `Run worlds and serve them over HTTP, until Ctrl-C: the API of docs/api.md, which
GET /api/openapi.yaml describes, and on a loopback address, or with --ui, the page of
worldctl ui under /ui/. The URL is printed to stdout, the log to stderr: what newly waits for a
person, halts or is denied, with -v a line for every request, with -q errors only, and with
-o json all of it as JSON lines. Other commands can be used on the worlds meanwhile.

Every world runs by itself, as under run --until-idle=false; with --manual only POST
/api/worlds/ID/step moves it. A world that cannot go on is not served any more, and
/healthz says why; the others go on.

In a store, without any world named, it is a node: it runs whatever worlds of the store have
something to do and no owner, gives worlds to other nodes until each has about as many, and
lets go of those that rest. When a node ends others have its worlds at once, and when it is
lost after 10 s. --node is a name that it keeps: started again under it, it has its worlds at
once. Give each its own --copies where several run on one machine. worldctl node list
shows them. Each answers for all worlds of the store; --advertise is where others reach it.
With --store several times it is a node of each of them, and serves their worlds as if they
lay in one; a store that is gone stops no world of the others.

What is performed for the worlds, whatever rules are put in force over HTTP, is in the file of
--trust, which is one of worldctl worker --help. Without it, effects of worlds in directories
are performed as they are when serve starts, and as worldctl apply puts them in force
meanwhile; of others, and of worlds in a store, those that need no secret, no program and no
file. An apply over HTTP that brings any other is refused, and where one is in force already its
intents wait: the log says for what. With --remote-workers workers have a file of their own,
and this one is about verifiers.

Whoever asks needs a token (worldctl token new). Without --token-file one with all
scopes is made at the start and printed to stderr, once; that is for loopback addresses
only. SIGHUP has the token file read again.

Requests are answered to loopback names, to the address of --addr, and to --allow-host.
There is no TLS: for other machines let a reverse proxy end TLS, pass Host on, and be
named by --allow-host.

With --notify-file what newly waits for a person is posted to the URL in that, signed with --notify-key:
docs/api.md says what, and how to check it.

No token and no world takes all of the server: docs/api.md lists the limits of what is
under way at once. A problem names the one that is reached, and --limit sets it.

Ctrl-C and SIGTERM end it, and SIGHUP without --token-file: requests and effects that are under
way get 10s to finish. A second signal, a second or more later, ends it at once, but for effects
under way: it names those, which would be in doubt, and a third one does. Exit code 130 after
Ctrl-C, 0 after SIGTERM, and that of the world's error where one could not go on.`

func newServeCommand(c *cli) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve [DIR...]",
		Short: "Run worlds and serve them over HTTP",
		Long:  serveHelp,
		Example: `  worldctl serve town
  worldctl serve town desk --addr 127.0.0.1:8080 --token-file tokens
  worldctl serve town --limit requests=128 --limit requests.token=64
  worldctl serve --store postgres://kernel@db.example.com/worlds --node one --token-file tokens`,
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
