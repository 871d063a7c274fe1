package worldctl

import (
	"context"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/node"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

// storeEnv is the variable that the URL of a store can be in, and with it a password: the
// arguments of a process are shown to all who are on its machine.
const storeEnv = "WORLDCTL_STORE"

// storeFlags say in which store the world lies that is meant, and how it is used.
type storeFlags struct {
	urls        []string
	copies      string
	take        bool
	node        string // the name that this process goes by; empty: one of its own
	advertise   string // where it answers for its worlds
	lease       time.Duration
	directories bool // the verb is about directories, whatever the environment says
}

func (s *storeFlags) addStore(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.urls, "store", nil, "the `URL` of the database that worlds lie in; "+storeEnv+" does the same, and is the place for one with a password; serve and node list take several")
	flags.StringVar(&s.copies, "copies", "", "`DIR` for copies of worlds in a store, which may be deleted at any moment; one in the cache if not given")
	flags.BoolVar(&s.take, "take", false, "take a world in a store over from its owner elsewhere, which can change it no more")
}

// addNode says which of the processes that own worlds of a store this is.
func (s *storeFlags) addNode(flags *pflag.FlagSet, idle *time.Duration) {
	flags.StringVar(&s.node, "node", "", "in a store: the `NAME` of this process among those that own its worlds")
	flags.StringVar(&s.advertise, "advertise", "", "in a store: the `URL` at which others reach this process")
	flags.DurationVar(&s.lease, "lease", pglog.DefaultLease, "in a store: have others take the worlds of this process over after they have not heard of it for so `LONG`")
	flags.DurationVar(idle, "idle", node.DefaultIdle, "in a store: let go of a world after it has rested for so `LONG`")
}

// minLease is the shortest lease of a node.
const minLease = time.Second

// storeURL leads to the store in which the world is that is meant; empty: it is in a directory.
func (c *cli) storeURL() string {
	if urls := c.storeURLs(); len(urls) > 0 {
		return urls[0]
	}
	return ""
}

// storeURLs lead to the stores that are meant: one, but for verbs that are about several; see ofStores.
func (c *cli) storeURLs() []string {
	if c.owned != nil || c.directories {
		return nil
	}
	typed := c.typedStores()
	if env := os.Getenv(storeEnv); len(typed) == 0 && env != "" {
		return []string{env}
	}
	return typed
}

// typedStores are those of --store.
func (s *storeFlags) typedStores() []string {
	return slices.DeleteFunc(slices.Clone(s.urls), func(url string) bool { return url == "" })
}

// ofStores reports whether a verb is about several stores where several are named.
func ofStores(cmd *cobra.Command) bool {
	return verbOf(cmd) == "serve" || verbOf(cmd) == "node" && cmd.Name() == "list"
}

// openStore opens the store, once.
func (c *cli) openStore() (_ *shared.Store, err error) {
	if c.stored == nil {
		opts, err := c.storeOptions()
		if err != nil {
			return nil, err
		}
		defer c.opts.interrupts.opening()()
		c.stored, err = shared.Open(context.Background(), c.storeURL(), opts)
		if err != nil {
			return nil, err
		}
	}
	return c.stored, nil
}

func (c *cli) storeOptions() (shared.Options, error) {
	if c.lease < 0 || c.lease > 0 && c.lease < minLease {
		return shared.Options{}, usagef("type --lease 10s", "--lease %v: %v is the least: a process that is slow for a moment would lose its worlds", c.lease, minLease)
	}
	o := shared.Options{
		Copies: c.path(c.copies), Take: c.take, Node: c.node, URL: c.advertise, Lease: c.lease, Version: version().Version,
		Asks: func(node string) {
			c.note("node %s has the world, and is asked for it: it gives it up when effects under way have ended", node)
		},
	}
	if c.advertise != "" {
		o.Passphrase = c.askPassphrase
	}
	return o, nil
}

func (c *cli) closeStore() {
	if c.stored != nil {
		c.stored.Close()
	}
	if c.nodes != nil {
		c.nodes.Close()
	}
}

// place finds the world of an id in the store that is meant, and returns the directory of its copy.
func (c *cli) place(id string) (dir string, err error) {
	if id == "" {
		return "", usagef("type -w ID; worldctl store status lists them", "which world of the store is meant?")
	}
	s, err := c.openStore()
	if err != nil {
		return "", err
	}
	w, err := s.World(id)
	if errors.Is(err, local.ErrBadID) {
		return "", usagef("in a store -w names a world by its id; without --store and "+storeEnv+" it is a directory", "%w", err)
	}
	if err == nil {
		c.placed = &w
	}
	return w.Dir, err
}

// placeWorld is place for verbs that are about a world of a store only.
func (c *cli) placeWorld() error {
	if c.storeURL() == "" {
		return errWhichStore()
	}
	_, err := c.place(c.world)
	return err
}

// in are the options of the world in a directory, which may be the copy of one in a store.
func (c *cli) in(dir string, opts local.Options) local.Options {
	if c.placed != nil && c.placed.Dir == dir {
		opts = c.placed.In(opts)
	}
	return opts
}

// placeAll has the worlds of a service be those of the store, if one is meant; where none is named,
// whichever fall to this process.
func (c *cli) placeAll(v *api.Service, s *serving, named []string) error {
	if c.storeURL() == "" {
		return nil
	}
	if len(named) > 0 {
		v.Place = func(id string) (string, local.Options, error) {
			dir, err := c.place(id)
			return dir, c.in(dir, v.Options), err
		}
		return nil
	}
	if err := c.checkAdvertised(v, s); err != nil {
		return err
	}
	opts, err := c.storeOptions()
	if err != nil {
		return err
	}
	v.Options.Passphrase = sync.OnceValues(v.Options.Passphrase) // worlds and stores are opened side by side
	opts.Passphrase = v.Options.Passphrase
	n := &node.Nodes{Service: v, Idle: s.idle, Events: v.Events}
	defer c.opts.interrupts.opening()()
	if err := n.Open(context.Background(), c.storeURLs(), opts); err != nil {
		return notOfStores(err)
	}
	c.nodes = n
	v.Keep, v.Stores, v.Health, v.Metrics = n.Keep, n, n.Health, n.Metrics()
	return nil
}

// notOfStores says what to type instead of stores that cannot be those of one process.
func notOfStores(err error) error {
	switch {
	case errors.Is(err, node.ErrSameStore):
		return usagef("give each store once with --store", "%w", err)
	case errors.Is(err, node.ErrTooMany):
		return usagef("run another process for the others", "%w", err)
	}
	return err
}

// checkAdvertised has a node answer to the name by which others reach it. They pass requests on with
// the tokens that these have shown to them.
func (c *cli) checkAdvertised(v *api.Service, s *serving) error {
	if c.advertise == "" {
		return nil
	}
	u, err := url.Parse(c.advertise)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return usagef("type --advertise http://HOST:PORT", "--advertise %s is no URL at which a process can be reached", c.advertise)
	}
	if s.tokens == "" {
		return usagef("worldctl token new NAME --scope read --file FILE, then give each node that file with --token-file",
			"--advertise has other nodes pass requests on to this one, and it would not know their tokens")
	}
	v.AllowedHosts = append(v.AllowedHosts, u.Host)
	return nil
}

// besideStore refuses to have verbs that are about directories and files do with a store.
func (c *cli) besideStore(cmd *cobra.Command) error {
	if verb := verbOf(cmd); ofDirectories(verb) {
		c.directories = true
		if len(c.typedStores()) > 0 {
			return usagef("leave --store out", "%s is about directories and files, and not about a store", verb)
		}
	}
	if n := len(c.typedStores()); n > 1 && !c.directories && !ofStores(cmd) {
		verb := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		hint := "type " + verb + " once for each store: only serve and node list take several"
		if cmd.Flags().Lookup("to-store") != nil {
			hint = "name the one that it goes to with --to-store"
		}
		return usagef(hint, "%s is about one store, and --store names %d", verb, n)
	}
	if c.take && c.storeURL() == "" && c.owned == nil {
		return usagef("leave --take out: what uses a directory has to end first", "--take is for a world in a store")
	}
	return nil
}

// ofDirectories reports whether a verb is about directories and files, whatever the environment says.
func ofDirectories(verb string) bool {
	switch verb {
	case "dev", "validate", "test", "sweep", "import", "worker", "token", "version", "help", "completion":
		return true
	}
	return false
}

// storeTyped is --store as it was typed, behind a blank, for commands to type; empty: it was not. No
// verb prints a password.
func (c *cli) storeTyped() string {
	typed := c.typedStores()
	if len(typed) == 0 {
		return ""
	}
	u, err := url.Parse(typed[0])
	if err != nil || strings.Contains(typed[0], "password") {
		return " --store URL"
	}
	if _, has := u.User.Password(); has {
		return " --store URL"
	}
	return " --store " + shellWord(typed[0])
}

// reads reports whether a command only reads its world. Proofs and bundles are signed, and kept by
// whoever asked for them.
func reads(cmd *cobra.Command) bool {
	switch verbOf(cmd) {
	case "status", "tail", "audit", "timeline", "why", "graph", "diff", "verify", "replay", "measure", "policy", "export", "prove":
		return true
	case "cell", "snapshot", "intent", "budget", "receipt", "proposal", "manifest", "keys":
		switch cmd.Name() {
		case "list", "show", "hash", "save", "verify":
			return true
		}
	case "checkpoint":
		listed, _ := cmd.Flags().GetBool("list")
		return listed
	}
	return false
}
