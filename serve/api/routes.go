package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// route is one thing that can be asked.
type route struct {
	method, path string
	scope        Scope // that a token needs
	or           Scope // that does as well; empty: none
	query        []string
	named        bool // its list goes on after a name, others after a number
	long         bool // it takes as long as a verification may
	health       bool // it has slots of its own
	metrics      bool // it tells of all worlds, and Config.OpenMetrics opens it
	held         bool // about what a worker holds: it is answered while the world leaves, until that is done
	answer       func(*call) error
}

// ofWorld reports whether the route is about one world.
func (rt *route) ofWorld() bool { return strings.HasPrefix(rt.path, ofWorld) }

// works reports whether what is asked takes the processor, for about as long as the
// caller likes: pages do. A verification takes its turns itself.
func (rt *route) works() bool { return rt.method == http.MethodGet && !rt.health && !rt.long }

// healthPath tells how the server is, to everybody.
const healthPath = "/healthz"

// ofWorld begins the paths of what is about one world.
const ofWorld = "/api/worlds/{id}"

// routes returns all routes. Keys of cells may hold slashes, dots and anything else
// that a path loses on its way, so that cells are named in the query.
func routes() []route {
	return slices.Concat(readRoutes(), submitRoutes(), decideRoutes(), workRoutes(), changeRoutes())
}

// readRoutes are those of the server, and of who looks.
func readRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return []route{
		{method: get, path: healthPath, scope: scopeOpen, health: true, answer: health},
		{method: get, path: "/metrics", scope: ScopeRead, metrics: true, answer: showMetrics},
		{method: get, path: "/api/openapi.yaml", scope: ScopeRead, answer: showDocumentYAML},
		{method: get, path: "/api/openapi.json", scope: ScopeRead, answer: showDocumentJSON},
		{method: post, path: "/api/sessions", scope: scopeOpen, answer: openSession},
		{method: http.MethodDelete, path: "/api/sessions", scope: scopeAny, answer: closeSession},
		{method: get, path: "/api/worlds", scope: ScopeRead, or: ScopeWork, query: []string{"after", "limit"}, named: true, answer: listWorlds},

		{method: get, path: "/api/inbox", scope: ScopeRead, query: []string{"after", "limit"}, named: true, answer: showInbox},
		{method: get, path: "/api/whoami", scope: scopeAny, answer: whoami},
		{method: get, path: linkPath + "{id}/{ticket}", scope: scopeOpen, answer: followLink},

		{method: get, path: ofWorld, scope: ScopeRead, answer: showStatus},
		{method: get, path: ofWorld + "/records", scope: ScopeRead, query: []string{"after", "before", "from", "to", "limit", "kind", "cell", "caused_by", "ids", "raw"}, answer: listRecords},
		{method: get, path: ofWorld + "/records/{n}", scope: ScopeRead, query: []string{"raw"}, answer: showRecord},
		{method: get, path: ofWorld + "/records/{n}/graph", scope: ScopeRead, query: []string{"depth", "limit"}, answer: showGraph},
		{method: get, path: ofWorld + "/columns", scope: ScopeRead, query: []string{"after"}, answer: showColumns},
		{method: get, path: ofWorld + "/density", scope: ScopeRead, query: []string{"buckets"}, answer: showDensity},
		{method: get, path: ofWorld + "/cells", scope: ScopeRead, query: []string{"at", "select", "state", "after", "limit"}, named: true, answer: listCells},
		{method: get, path: ofWorld + "/cell", scope: ScopeRead, query: []string{"cell", "at", "mail"}, answer: showCell},
		{method: get, path: ofWorld + "/cell/diff", scope: ScopeRead, query: []string{"cell", "at", "a", "b"}, answer: showCellDiff},
		{method: get, path: ofWorld + "/timeline", scope: ScopeRead, query: []string{"cell", "after", "from", "to", "limit"}, answer: showTimeline},
		{method: get, path: ofWorld + "/intents", scope: ScopeRead, query: []string{"state", "cell", "kind", "since", "after", "limit"}, answer: listIntents},
		{method: get, path: ofWorld + "/intents/{key}", scope: ScopeRead, answer: showIntent},
		{method: get, path: ofWorld + "/receipts", scope: ScopeRead, query: []string{"cell", "kind", "status", "after", "from", "to", "limit"}, answer: listReceipts},
		{method: get, path: ofWorld + "/receipts/{key}", scope: ScopeRead, query: []string{"attempt"}, answer: showReceipt},
		{method: get, path: ofWorld + "/budgets", scope: ScopeRead, query: []string{"after", "limit"}, answer: listBudgets},
		{method: get, path: ofWorld + "/decisions", scope: ScopeRead, query: []string{"cell", "kind", "decision", "after", "from", "to", "limit"}, answer: listDecisions},
		{method: get, path: ofWorld + "/checkpoints", scope: ScopeRead, query: []string{"after", "limit"}, answer: listCheckpoints},
		{method: get, path: ofWorld + "/snapshots", scope: ScopeRead, query: []string{"after", "limit"}, answer: listSnapshots},
		{method: get, path: ofWorld + "/proposals", scope: ScopeRead, query: []string{"all", "after", "limit"}, answer: listProposals},
		{method: get, path: ofWorld + "/proposals/{n}", scope: ScopeRead, answer: showProposal},
		{method: get, path: ofWorld + "/search", scope: ScopeRead, query: []string{"q", "limit"}, answer: search},
		{method: get, path: ofWorld + "/series", scope: ScopeRead, query: []string{"from", "to", "buckets", "limit"}, answer: showSeries},
		{method: get, path: ofWorld + "/proposals/{n}/report", scope: ScopeRead, query: []string{"list", "after", "limit"}, long: true, answer: showReport},
		{method: get, path: ofWorld + "/compare", scope: ScopeRead, query: []string{"a", "b", "with", "limit"}, answer: compareMoments},
		{method: get, path: ofWorld + "/verify", scope: ScopeRead, long: true, answer: showVerification},
	}
}

func submitRoutes() []route {
	return []route{{method: http.MethodPost, path: ofWorld + "/events", scope: ScopeSubmit, answer: submit}}
}

// decideRoutes are those of a person who says what is to become of something.
func decideRoutes() []route {
	post := http.MethodPost
	return []route{
		{method: post, path: linkPath + "{id}/{ticket}", scope: scopeOpen, answer: followLink},
		{method: post, path: ofWorld + "/cell/resume", scope: ScopeApprove, answer: resumeCell(world.RetryEvent)},
		{method: post, path: ofWorld + "/cell/skip", scope: ScopeApprove, answer: resumeCell(world.SkipEvent)},
		{method: post, path: ofWorld + "/intents/approve", scope: ScopeApprove, answer: decideAllAs(journal.Approve)},
		{method: post, path: ofWorld + "/intents/deny", scope: ScopeApprove, answer: decideAllAs(journal.Disapprove)},
		{method: post, path: ofWorld + "/intents/stop", scope: ScopeApprove, answer: withBody(stopIntents)},
		{method: post, path: ofWorld + "/intents/retry", scope: ScopeApprove, answer: decideAllAs(journal.RetryAnyway)},
		{method: post, path: ofWorld + "/intents/resolve", scope: ScopeApprove, answer: resolveIntents},
		{method: post, path: ofWorld + "/intents/{key}/approve", scope: ScopeApprove, answer: decideAs(journal.Approve)},
		{method: post, path: ofWorld + "/intents/{key}/deny", scope: ScopeApprove, answer: decideAs(journal.Disapprove)},
		{method: post, path: ofWorld + "/intents/{key}/stop", scope: ScopeApprove, answer: decideAs(journal.Stop)},
		{method: post, path: ofWorld + "/intents/{key}/confirm", scope: ScopeApprove, answer: decideAs(local.Confirm)},
		{method: post, path: ofWorld + "/intents/{key}/edit", scope: ScopeApprove, answer: editIntent},
		{method: post, path: ofWorld + "/intents/{key}/retry", scope: ScopeApprove, answer: decideAs(journal.RetryAnyway)},
		{method: post, path: ofWorld + "/intents/{key}/resolve", scope: ScopeApprove, answer: resolveIntent},
		{method: post, path: ofWorld + "/intents/{key}/answer", scope: ScopeApprove, answer: answerIntent},
		{method: post, path: ofWorld + "/proposals/{n}/approve", scope: ScopeApprove, answer: withBody(approveProposal)},
		{method: post, path: ofWorld + "/proposals/{n}/reject", scope: ScopeApprove, answer: endProposal((*world.World).Reject)},
	}
}

// workRoutes are those of workers.
func workRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return []route{
		{method: get, path: ofWorld + "/manifest", scope: ScopeRead, or: ScopeWork, answer: showManifest},
		{method: get, path: ofWorld + "/contents/{hash}", scope: ScopeRead, or: ScopeWork, answer: showContent},
		{method: post, path: ofWorld + "/effects/acquire", scope: ScopeWork, answer: withBody(acquireEffects)},
		{method: post, path: ofWorld + "/effects/renew", scope: ScopeWork, held: true, answer: renewEffect},
		{method: post, path: ofWorld + "/effects/lose", scope: ScopeWork, answer: withBody(loseEffect)},
		{method: post, path: ofWorld + "/effects/commit", scope: ScopeWork, held: true, answer: commitEffect},
		{method: post, path: ofWorld + "/receipts", scope: ScopeWork, answer: receiveReceipt},
	}
}

// changeRoutes are those of whoever looks after a world.
func changeRoutes() []route {
	post := http.MethodPost
	return []route{
		{method: post, path: ofWorld + "/step", scope: ScopeAdmin, answer: withBody(step)},
		{method: post, path: ofWorld + "/snapshots", scope: ScopeAdmin, answer: withBody(makeSnapshot)},
		{method: post, path: ofWorld + "/snapshots/pin", scope: ScopeAdmin, answer: withBody(pinSnapshot)},
		{method: post, path: ofWorld + "/snapshots/prune", scope: ScopeAdmin, answer: withBody(pruneSnapshot)},
		{method: post, path: ofWorld + "/rollback", scope: ScopeAdmin, answer: withBody(rollBack)},
		{method: post, path: ofWorld + "/checkpoints", scope: ScopeAdmin, answer: makeCheckpoint},
		{method: post, path: ofWorld + "/fork", scope: ScopeAdmin, long: true, answer: withBody(forkWorld)},
		{method: post, path: ofWorld + "/what-if", scope: ScopeAdmin, long: true, answer: withBody(askWhatIf)},
		{method: post, path: ofWorld + "/proposals", scope: ScopeAdmin, answer: withBody(propose)},
		{method: post, path: ofWorld + "/proposals/{n}/shadow", scope: ScopeAdmin, long: true, answer: withBody(shadowProposal)},
		{method: post, path: ofWorld + "/proposals/{n}/withdraw", scope: ScopeAdmin, answer: endProposal((*world.World).Withdraw)},
		{method: post, path: ofWorld + "/proposals/{n}/apply", scope: ScopeAdmin, answer: applyProposal},
	}
}
