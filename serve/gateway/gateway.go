// Package gateway is what an agent that runs beside a world talks to in the place of its model's
// provider. It is a part of worldctl, and not an API.
//
// A session is a cell of the reducer recorder, and a Gateway serves one incarnation of it: one
// start of the agent. Each request becomes an event of the cell; the cell asks for a model call;
// the gate judges it; the adapter relay makes it. What the provider answers flows to the agent
// as it comes, but for what asks for a tool, and for the end: these are held until the
// answer is durable, since the agent acts on them at once.
//
// Requests are known by their lineage (package host/relay). A request that an earlier incarnation
// has asked, and got an answer to, is answered from the record: nothing is paid, and nothing
// changes. A request that no incarnation has asked, while recorded answers are left, is a
// divergence, and stops the agent.
//
// An agent without hooks gets an answer that asks for tools once each of them is permitted, as an intent. Where one is
// denied, the gateway tells the model so, and the agent gets the answer to that.
//
// An agent that has hooks asks before it runs a tool of its own, and tells what came of it: each is an
// intent, too. A tool that an earlier incarnation has run is denied by the hook, and the recorded result
// is put in the place of the denial in what the model sees.
//
// The address of the gateway has a secret in it: /a/TOKEN/DIALECT/…. It is to be served on
// loopback only.
package gateway

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/link"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Limits of a gateway.
const (
	MaxBody   = 6 << 20                // bytes of a request
	maxOpen   = 64                     // requests at once
	holdTime  = 240 * time.Second      // how long a request waits for a person: below what clients allow
	pingTime  = 5 * time.Second        // between two signs of life of a stream that is held
	twinTime  = 2 * time.Second        // how long a request waits for the client of an equal one to go: then it is a retry
	cutTime   = 200 * time.Millisecond // how long an answer that was cut off stays open
	lookAgain = 100 * time.Millisecond // where no record tells
	lateTime  = 5 * time.Second        // how long what nobody has asked waits for recorded answers to be taken
)

// Config says which session a gateway serves.
type Config struct {
	World     *local.World     // is driven by the caller, unless Offline
	Desk      *relay.Desk      // of the adapter relay of World
	Tools     *outside.Callers // of the adapter outside of World
	Session   string           // the key of the session's cell
	Principal string           // who has started the agent
	Command   []string         // the agent; empty: it was started by somebody else
	Dir       string           // where it runs

	Upstream map[string]string                  // by dialect: where the agent's provider is, unless the manifest says it
	Offline  bool                               // only the record answers, and the world stays as it is
	Diverge  bool                               // what was not asked before goes to the provider
	Address  string                             // HOST:PORT where it is served; empty: people decide by no link
	Offers   bool                               // and MCP clients that open links for their users get them: the agent is no program that follows them itself
	Waits    func(key receipt.Key, link string) // is told of each call that a person has to approve, and where, from another goroutine; nil: nobody is
	Again    bool                               // the agent was started again: calls of tools that the record has are not made
	Answers  bool                               // the agent's own tools are judged in the answers that ask for them
	Hooked   bool                               // but for those of Claude Code, which asks by its hooks
	Defer    time.Duration                      // after which a tool that waits for a person ends Claude Code, which runs without a terminal; 0: the model is told to call again
	Recalls  bool                               // its hook asks only whether a tool ran before: that of Codex
	Branch   *Branch                            // the world is a fork, and something is other in it than in its parent; nil: nothing is
}

// Branch says what is other in a fork of a session, from one of its calls on.
type Branch struct {
	Lineage string // of the call
	Answer  []byte // to it, in the place of the provider's: see relay.Asked.Given; nil: the provider is asked

	recorder.Instead
}

// Gateway serves one incarnation of a session. It is safe for concurrent use.
type Gateway struct {
	cfg         Config
	record      view.Journal // of the world
	cell        reducer.Cell
	incarnation uint64
	token       string
	open        atomic.Int64    // requests
	life        context.Context // of connections to servers of tools
	end         context.CancelFunc
	following   sync.WaitGroup

	looking sync.Mutex // is held, before mu, while the world is asked how intents stand

	mu       sync.Mutex
	news     chan struct{}          // closed when it is otherwise which calls are made, or less is left of the record
	read     journal.Seq            // the last record that intents is of
	intents  map[string]receipt.Key // by tag: what the journal says was asked for
	awaited  map[string]*asking     // by tag: calls that somebody waits for, and have not ended
	models   calls                  // by lineage: requests
	ever     map[string]bool        // lineages that were asked before
	joined   map[string]string      // by the model's id: the tags of calls of earlier incarnations that such calls took over
	numbered uint64                 // calls of this incarnation
	instead  recorder.Instead       // the model that is asked
	tools    tools
	hooks    hooks
	pins     relay.Pins // of requests that were answered from the record
	summary  Summary
	failed   error // of the journal
}

// Summary says what an incarnation came to.
type Summary struct {
	Requests     int           // that reached the gateway
	UnderWay     int           // calls that have not ended, and wait for no person
	Calls        int           // that were made of the provider
	Served       int           // answered from the record
	Denied       int           // by the gate
	Waiting      int           // for a person
	Deferred     []receipt.Key // for which the agent has ended: see Config.Defer
	InDoubt      int           // nobody can tell what became of them
	Failed       int           // that the provider refused, or did not answer whole
	Left         int           // recorded answers that were not asked for
	ToolRequests int           // calls of tools that reached the gateway
	ToolCalls    int           // that were made
	ToolsServed  int           // answered from the record
	Changed      []string      // SERVER/TOOL: tools that are other than before
	Tokens       uint64        // of the calls
	Micros       uint64        // what they cost
	Tools        int           // that the answers asked for
	Divergence   *Divergence   // the first; nil: there was none
	Branched     bool          // the call of Config.Branch was made
}

// Divergence is a request that no earlier incarnation has made.
type Divergence struct {
	Request int    // which of the incarnation, from 1
	Path    string // of HTTP; of a call of a tool its server
	Model   string
	Tool    string // empty: it is no call of a tool
	Prompt  string // the last text of the user's, shortened
	Nearest string // the key of the recorded call that is most like it; empty: there is none
	Place   string // the JSON pointer of the first difference to that
}

// diverge notes the first request that was never made before.
func (s *Summary) diverge(d *Divergence) {
	if s.Divergence == nil {
		s.Divergence = d
	}
}

// Open begins an incarnation of a session, with an event unless it is offline. Close ends it. It waits for calls of the
// session that are under way, or whose results the journal does not have yet: an answer that is not on record yet would be paid again.
func Open(ctx context.Context, cfg Config) (*Gateway, error) {
	secret := make([]byte, 24)
	_, _ = rand.Read(secret) // it never fails
	g := &Gateway{
		cfg: cfg, record: view.Journal{Local: cfg.World}, cell: reducer.Cell{Reducer: recorder.Name, Key: cfg.Session}, token: hex.EncodeToString(secret),
		news: make(chan struct{}), intents: make(map[string]receipt.Key), awaited: make(map[string]*asking), models: newCalls(), ever: make(map[string]bool), pins: make(relay.Pins),
	}
	if err := g.settle(ctx); err != nil {
		return nil, err
	}
	g.recallTools()
	g.hooks.begin()
	if err := errors.Join(g.recall(), g.recallListed()); err != nil {
		return nil, err
	}
	if cfg.Branch != nil {
		g.ever[cfg.Branch.Lineage] = true
		if cfg.Branch.Model != "" {
			g.instead = cfg.Branch.Instead
		}
	}
	after := cfg.World.Head().ID
	g.read = after
	if !cfg.Offline {
		begins := recorder.Beginning{Incarnation: g.incarnation, Principal: cfg.Principal, Command: cfg.Command, Dir: cfg.Dir, Instead: g.instead}
		if err := g.submit(ctx, recorder.Began, begins); err != nil {
			return nil, err
		}
	}
	if !cfg.Offline && cfg.Waits != nil { // what waits since before has no new record
		for _, e := range g.record.Ledger() {
			g.tellWaits(&e)
		}
	}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	g.life, g.end = following, end
	g.following.Go(func() { g.follow(following, after) })
	return g, nil
}

// Close ends the incarnation, of an agent that ended with an exit code, and says what it came to. Requests
// that are under way are not waited for.
func (g *Gateway) Close(ctx context.Context, code int) (Summary, error) {
	g.abandon(code)
	g.drain(ctx)
	var err error
	if !g.cfg.Offline {
		err = errors.Join(g.submit(ctx, recorder.Ended, recorder.Ending{Incarnation: g.incarnation, Code: int64(code)}), g.handled(ctx))
	}
	g.end()
	g.following.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.summary
	s.Left = len(g.models.left())
	if g.cfg.Again || g.cfg.Offline {
		s.Left += len(g.tools.left())
	}
	s.Waiting, s.UnderWay = g.unended()
	return s, errors.Join(err, g.failed)
}

// Incarnation returns the number of the incarnation, from 1.
func (g *Gateway) Incarnation() uint64 { return g.incarnation }

// Recorded returns how many answers of earlier incarnations there are.
func (g *Gateway) Recorded() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.models.left())
}

// URL returns where the agent finds a dialect, on a server at an address.
func (g *Gateway) URL(address, dialect string) string {
	return "http://" + address + "/a/" + g.token + "/" + dialect
}

// decidePath begins the paths of tickets. The token of the agent is not in them, and leads to none.
const decidePath = "/decide/"

// link returns where a person decides about an intent; empty: nowhere.
func (g *Gateway) link(e *receipt.Entry) string {
	of := link.Of(g.cfg.World, e)
	if of == "" || g.cfg.Address == "" {
		return ""
	}
	return "http://" + g.cfg.Address + decidePath + of
}

func (g *Gateway) submit(ctx context.Context, name string, data any) error {
	b, err := canon.Marshal(data)
	if err == nil {
		submit := g.cfg.World.SubmitEvent
		if name == recorder.Asked || name == recorder.Called || name == recorder.Served { // what comes of it is told once that is durable
			submit = g.cfg.World.AcceptEvent
		}
		_, err = submit(ctx, world.Submission{Name: name, Data: b, To: &g.cell})
	}
	return err
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/a/"), "/")
	dialect, path, _ := strings.Cut(rest, "/")
	decides, is := strings.CutPrefix(r.URL.Path, decidePath)
	switch {
	case is && loopback(r.Host) && !g.cfg.Offline:
		link.Serve(w, r, g.cfg.World, decides)
		return
	case !loopback(r.Host) || subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1:
		http.Error(w, "no such session", http.StatusNotFound)
		return
	case ofElsewhere(r):
		http.Error(w, pageElsewhere, http.StatusForbidden)
		return
	case dialect == Tools:
		g.serveMCP(w, r, path)
		return
	case dialect == Hooks:
		g.serveHook(w, r)
		return
	case dialect != relay.OpenAI && dialect != relay.Anthropic:
		http.Error(w, "want /a/TOKEN/openai/…, /a/TOKEN/anthropic/… or /a/TOKEN/mcp/…", http.StatusNotFound)
		return
	case r.Header.Get("Upgrade") != "":
		w.WriteHeader(http.StatusUpgradeRequired) // Codex goes on with POST at once
		return
	case r.Method == http.MethodHead: // somebody looks whether there is a server
		w.WriteHeader(http.StatusOK)
		return
	}
	c := &conversation{g: g, dialect: dialect, header: r.Header, begun: time.Now()}
	defer g.open.Add(-1)
	if g.open.Add(1) > maxOpen {
		c.refuse(w, refusal{status: http.StatusServiceUnavailable, text: "too many requests at once"})
		return
	}
	path = "/" + path
	if dialect == relay.Anthropic && !strings.HasPrefix(path, "/v1/") {
		path = "/v1" + path // opencode and the AI SDK have it in their address
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	c.serve(w, r, path)
}

// loopback reports whether a request is for this machine by name: a page that a browser has
// loaded elsewhere names another host.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pageElsewhere is what the page of another site is told.
const pageElsewhere = "a page of another site has sent this"

// ofElsewhere reports whether a browser has sent a request for a page that is not of this machine: agents are no pages.
func ofElsewhere(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Origin"), func(origin string) bool {
		at, err := url.Parse(origin)
		return err != nil || !loopback(at.Host)
	})
}

// follow tells requests what the journal says about their intents.
func (g *Gateway) follow(ctx context.Context, after journal.Seq) {
	for {
		var err error
		after, err = g.readIntents(ctx, after)
		if ctx.Err() != nil {
			return
		}
		g.mu.Lock()
		g.failed = err
		for _, a := range g.awaited { // order cannot show: all of them
			if err != nil {
				ring(&a.news)
			}
		}
		g.mu.Unlock()
		if err != nil {
			return
		}
	}
}
