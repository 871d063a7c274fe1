package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names that no manifest may declare: see reducer.Operator and
// reducer.ReceiptEvent.
const (
	reservedReducer = "operator"
	reservedEvent   = "receipt"
)

// Greatest values of what is not a limit itself: those of limits are in limits.go. They
// bound what one world may ask of its machine, whoever wrote the manifest.
const (
	maxEntries       = 10_000         // in each section
	maxTimeout       = 24 * time.Hour // of one attempt
	minRealTick      = time.Millisecond
	maxBackoff       = 24 * time.Hour // before the second attempt
	maxAttempts      = 1000
	maxBudget        = math.MaxInt64 // of each unit: policies see it as an integer
	maxApprovalTTL   = 1 << 53       // ticks
	maxPer           = 1 << 53       // ticks, of a budget or a rate
	maxRate          = 1 << 32       // calls
	minSnapshotEvery = 100           // records: snapshots cost what changed since the last one
	maxSnapshotEvery = 1 << 53       // records

	maxParamsBytes = 1 << 20 // of what one reducer is given

	minCheckpointEvery = 100     // records: each is synced, and stays for ever
	maxCheckpointEvery = 1 << 24 // records: what comes after the last one, nobody can be shown
	maxMaxSnapshots    = 10_000
)

// MaxModules is how many modules a reducer has at most.
const MaxModules = 64

// Fault is a mistake in a manifest, with its place.
type Fault struct {
	Path string // JSON pointer (RFC 6901), as in "/reducers/agent/grants/0"
	Msg  string
}

// Validate returns everything that is wrong with m, whose defaults must be
// filled in; nothing when m can be in force. The faults come in the order of
// Manifest's fields, names sorted. It looks at m alone: whether sources,
// schemas and policies compile is checked where their text is at hand.
func (m *Manifest) Validate() []Fault {
	v := validator{m: m, undone: make(map[string]bool)}
	v.check("/world", checkText(m.World))
	if m.Clock.Tick < 1 {
		v.fault("/clock/tick", "a tick is at least 1ns long")
	}
	if m.Clock.Mode != "" {
		v.oneOf("/clock/mode", m.Clock.Mode, ClockSimulated, ClockReal)
	}
	if m.Clock.Real() && m.Clock.Tick > 0 && m.Clock.Tick < int64(minRealTick) {
		v.fault("/clock/tick", "a tick of a real clock is at least %s long", minRealTick)
	}
	if len(m.Reducers) == 0 {
		v.fault("/reducers", "a world needs at least one reducer")
	}
	each(&v, "/reducers", m.Reducers, v.reducer)
	each(&v, "/events", m.Events, v.event)
	each(&v, "/effects", m.Effects, v.effect)
	each(&v, "/caps", m.Caps, v.cap)
	v.count("/policies", len(m.Policies))
	v.policies()
	v.count("/routing", len(m.Routing))
	for i, r := range m.Routing {
		v.route("/routing/"+strconv.Itoa(i), r)
	}
	v.budget("/budget/", m.Budget)
	v.defaults("/defaults/", m.Defaults)
	v.limits("/limits/", v.m.Limits.allLimits())
	v.governance("/governance/", m.Governance)
	v.engines("/engines", m.Engines)
	return v.faults
}

type validator struct {
	m      *Manifest
	faults []Fault
	undone map[string]bool // effects from which the way of compensations was followed
}

// maxFaults is how many faults are told of: a manifest of 4 MiB can have a million.
const maxFaults = 100

func (v *validator) fault(path, format string, args ...any) {
	if len(v.faults) >= maxFaults {
		return
	}
	v.faults = append(v.faults, Fault{Path: path, Msg: fmt.Sprintf(format, args...)})
}

// check records err, if any.
func (v *validator) check(path string, err error) {
	if err != nil {
		v.fault(path, "%s", err.Error())
	}
}

func (v *validator) count(path string, n int) {
	if n > maxEntries {
		v.fault(path, "has %d entries, at most %d are allowed", n, maxEntries)
	}
}

// oneOf records that value is none of those known.
func (v *validator) oneOf(path, value string, known ...string) {
	if !slices.Contains(known, value) {
		v.fault(path, "want %s, not %q", strings.Join(known, " or "), value)
	}
}

// each checks the entries of one section, in the order of their names.
func each[T any](v *validator, path string, section map[string]T, check func(path, name string, value T)) {
	v.count(path, len(section))
	for _, name := range slices.Sorted(maps.Keys(section)) {
		check(path+"/"+escape(name), name, section[name])
	}
}

func (v *validator) reducer(path, name string, r Reducer) {
	v.check(path, checkIdentifier(name))
	if name == reservedReducer {
		v.fault(path, "the name %q is reserved for people", name)
	}
	v.engine(path, r)
	v.modules(path+"/modules", r)
	if len(r.Params) > 0 {
		v.check(path+"/params", checkMap(r.Params))
	}
	if n := len(r.Params); n > maxParamsBytes {
		v.fault(path+"/params", "has %d bytes, at most %d are allowed", n, maxParamsBytes)
	}
	for i, grant := range r.Grants {
		if _, ok := v.m.Caps[grant]; !ok {
			v.fault(path+"/grants/"+strconv.Itoa(i), "there is no capability %q%s", grant, among(grant, v.m.Caps))
		}
	}
	v.oneOf(path+"/on_error", r.OnError, OnErrorHalt, OnErrorSkip)
	v.budget(path+"/budget/", r.Budget)
	v.limits(path+"/limits/", r.Limits.allLimits())
}

func (v *validator) engine(path string, r Reducer) {
	needs := func(field, value string) {
		if value == "" {
			v.fault(path+"/"+field, "engine %s needs a %s", r.Engine, field)
		}
	}
	lacks := func(field string, is bool) {
		if is {
			v.fault(path+"/"+field, "engine %s has no %s", r.Engine, field)
		}
	}
	switch {
	case runsCode(r.Engine):
		if r.Source.IsZero() {
			needs("source", "")
		}
		lacks("name", r.Name != "")
		lacks("version", r.Version != "")
	case r.Engine == EngineGo:
		needs("name", r.Name)
		needs("version", r.Version)
		lacks("source", r.File != "" || !r.Source.IsZero())
	default:
		v.oneOf(path+"/engine", r.Engine, append(engineNames(true), EngineGo)...)
	}
}

func (v *validator) modules(path string, r Reducer) {
	if len(r.Modules) > 0 && !runsCode(r.Engine) {
		v.fault(path, "engine %s has no modules", r.Engine)
	}
	if n := len(r.Modules); n > MaxModules {
		v.fault(path, "a reducer has %d modules, at most %d are allowed", n, MaxModules)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Modules)) {
		if name == "" || r.Modules[name].IsZero() {
			v.fault(path+"/"+escape(name), "the module has no content, or no name")
		}
	}
}

func (v *validator) event(path, name string, e Event) {
	v.check(path, checkName(name))
	if name == reservedEvent {
		v.fault(path, "the name %q is reserved for the answers to effects", name)
	}
	if e.File != "" && e.Schema.IsZero() {
		v.fault(path+"/schema", "the schema %q has no content", e.File)
	}
}

func (v *validator) policies() {
	taken := make(map[string]bool, len(v.m.Policies))
	for i, p := range v.m.Policies {
		path := "/policies/" + strconv.Itoa(i)
		v.check(path+"/name", checkText(p.Name))
		if taken[p.Name] {
			v.fault(path+"/name", "the name %q is taken by an earlier policy", p.Name)
		}
		taken[p.Name] = p.Name != ""
		if strings.TrimSpace(p.When) == "" {
			v.fault(path+"/when", "a policy needs an expression that says when it applies")
		}
		v.oneOf(path+"/decide", p.Decide, DecideAllow, DecideDeny, DecideRequireApproval)
	}
}

func (v *validator) route(path string, r Route) {
	if err := checkPattern(r.Event); err != nil {
		v.check(path+"/event", err)
	} else if !v.declared(r.Event) {
		v.fault(path+"/event", "no declared event matches %q%s", r.Event, among(r.Event, v.m.Events))
	}
	if _, ok := v.m.Reducers[r.Reducer]; !ok {
		v.fault(path+"/reducer", "there is no reducer %q%s", r.Reducer, among(r.Reducer, v.m.Reducers))
	}
	if r.Order != "" {
		v.oneOf(path+"/order", r.Order, OrderName, OrderRandom)
	}
	switch {
	case r.Each && r.Key != "":
		v.fault(path+"/key", "what goes to each cell of a reducer has no key: leave out key, or each")
	case !r.Each && r.Order != "":
		v.fault(path+"/order", "only what goes to each cell of a reducer has an order: say each: true, or leave it out")
	case !r.Each:
		_, err := ParseKeyExpr(r.Key)
		v.check(path+"/key", err)
	}
}

func (v *validator) declared(pattern string) bool {
	for name := range v.m.Events { // order cannot show: any match will do
		if Match(pattern, name) {
			return true
		}
	}
	return false
}

func (v *validator) defaults(path string, d Defaults) {
	v.limit(path+"approval_ttl", uint64(d.ApprovalTTL), maxApprovalTTL)
	if n := d.SnapshotEvery; n != 0 && (n < minSnapshotEvery || n > maxSnapshotEvery) {
		v.fault(path+"snapshot_every", "must be 0 or %d to %d, not %d", minSnapshotEvery, uint64(maxSnapshotEvery), n)
	}
	if n := d.CheckpointEvery; n != 0 && (n < minCheckpointEvery || n > maxCheckpointEvery) {
		v.fault(path+"checkpoint_every", "must be %d to %d, not %d", minCheckpointEvery, maxCheckpointEvery, n)
	}
	if n := d.Retention.MaxSnapshots; n != 0 {
		v.limit(path+"retention/max_snapshots", n, maxMaxSnapshots)
	}
}

func (v *validator) limits(path string, all []limit) {
	for _, l := range all {
		v.limit(path+l.name, l.value(), l.most)
	}
}

func (v *validator) limit(path string, have, most uint64) {
	if have < 1 || have > most {
		v.fault(path, "must be 1 to %d, not %d", most, have)
	}
}

func (v *validator) budget(path string, b Budget) {
	for _, l := range b.allLimits() {
		v.amount(path+l.name, *l.have)
	}
	switch {
	case b.Per > maxPer:
		v.fault(path+"per", "must be at most %d, not %d", uint64(maxPer), b.Per)
	case b == Budget{Per: b.Per} && b.Per != 0:
		v.fault(path+"per", "the budget bounds nothing that could renew")
	}
}

// amount checks how much of a unit a budget has, or an attempt costs at most.
func (v *validator) amount(path string, n uint64) {
	if n > maxBudget {
		v.fault(path, "must be at most %d, not %d", uint64(maxBudget), n)
	}
}

// lazyText is a part of a message that costs something, and is made where it is lazyText.
type lazyText func() string

func (t lazyText) String() string { return t() }

// among says which name of a section was meant, or lists them, for a message about one
// that there is not.
func among[T any](name string, section map[string]T) lazyText {
	return func() string { return Instead(name, slices.Sorted(maps.Keys(section))) }
}

// NoAdapterError says that a program lacks an adapter, or a verifier, that a manifest
// names.
type NoAdapterError struct {
	What  string // "adapter" or "verifier"
	Name  string
	Known []string // those that there are, sorted
}

func (e *NoAdapterError) Error() string {
	if like := Nearest(e.Name, e.Known); like != "" {
		return fmt.Sprintf("there is no %s %q: did you mean %q?", e.What, e.Name, like)
	}
	text := fmt.Sprintf("there is no %s %q; there are: %s", e.What, e.Name, strings.Join(e.Known, ", "))
	if e.What == "adapter" && (e.Name == "llm" || e.Name == "mcp" || e.Name == AdapterRelay || e.Name == AdapterOutside) {
		text += fmt.Sprintf("; import github.com/worldkernel/worldkernel/host/%[1]s and give the program the adapter %[1]s.New", e.Name)
	}
	return text
}
