package experiment

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// loader reads one experiment.
type loader struct {
	*source.Document
	spec *Spec
	dir  string        // of the file: what it names is relative to it
	opts local.Options // that worlds are read with
	mode string        // of effects, whatever the document says
	live manifest.Live // see LoadOptions
	base rules         // of the world, or in force at the moment where runs begin
	at   map[string]*yaml.Node

	bounded bool // the document says no ticks: limits.ticks decides where a run ends that has no other end
}

// LoadOptions say how an experiment is read.
type LoadOptions struct {
	Worlds  local.Options // Go reducers, adapters and secrets
	Effects string        // what answers effects, whatever the document says; empty: what it says
	Live    manifest.Live // the kinds of effects that may be performed: no document makes any live
}

// Load reads an experiment and its worlds and files, and makes its plan. What is wrong is
// reported at once, each with its line and column, as a *source.Error; any other error
// says that a file or a world cannot be read.
func Load(file string, o LoadOptions) (*Spec, error) {
	document, err := source.ReadDocument(file, "a mapping with at least experiment, version, world, seeds and measures")
	if err != nil {
		return nil, err
	}
	l := &loader{
		Document: document, opts: o.Worlds, mode: o.Effects, live: o.Live, dir: filepath.Dir(file), at: make(map[string]*yaml.Node),
		spec: &Spec{Plan: Plan{File: file}, Effects: Effects{Mode: EffectsStub}},
	}
	if err := l.readDocument(); err != nil {
		return nil, err
	}
	return l.spec, nil
}

// readDocument reads the document: first what it is of, then what it does with that.
func (l *loader) readDocument() error {
	keep := func(name string) func(*yaml.Node) { return func(n *yaml.Node) { l.at[name] = n } }
	known := map[string]func(*yaml.Node){
		"experiment": l.Text(&l.spec.Experiment),
		"version":    func(*yaml.Node) {}, // version has read it
		"limits": func(n *yaml.Node) {
			l.Mapping(n, map[string]func(*yaml.Node){
				"runs": l.Count(&l.spec.Limits.Runs), "ticks": l.Count(&l.spec.Limits.Ticks),
				"rows": l.Count(&l.spec.Limits.Rows), "bytes": l.Size(&l.spec.Limits.Bytes), "inputs": l.Size(&l.spec.Limits.Input),
				"values": l.Count(&l.spec.Limits.Measures.Values), "gas": l.Count(&l.spec.Limits.Measures.Gas), "memory": l.Size(&l.spec.Limits.Measures.Memory),
			})
			if runs := l.spec.Limits.Runs; runs > MaxRuns {
				l.Fault(n, "limits.runs is %d: an experiment has at most %d; several with other seeds have more", runs, MaxRuns)
				l.spec.Limits.Runs = MaxRuns // what follows makes room for so many
			}
		},
	}
	for _, name := range []string{"world", "from", "variants", "params", "sample", "seeds", "inputs", "stop", "measures", "at", "effects"} {
		known[name] = keep(name)
	}
	l.version()
	if err := l.Err(); err != nil { // another version may have other keys
		return err
	}
	l.Mapping(l.Root(), known)
	l.spec.Limits = l.spec.Limits.withDefaults()
	if l.spec.Experiment == "" && !l.Refused(l.Root()) {
		l.Fault(l.Root(), "experiment: want the name of the experiment")
	}
	if err := l.world(); err != nil {
		return err
	}
	if l.base.manifest == nil { // then nothing of the rest can be told
		return l.Err()
	}
	if l.base.manifest.Clock.Real() {
		l.Fault(l.Root(), "the clock of the world is real: runs take clock.mode simulated")
	}
	l.spec.base = l.base
	l.params()
	l.variants()
	l.seeds()
	l.input()
	l.stop()
	l.endless()
	l.effects()
	l.measures()
	if err := l.Err(); err != nil {
		return err
	}
	l.count()
	l.rehearse()
	if err := l.Err(); err != nil {
		return err
	}
	return l.seal()
}

// version refuses documents of another version before anything else is said of them.
func (l *loader) version() {
	var found *yaml.Node
	l.Entries(l.Root(), func(key, value *yaml.Node) {
		if key.Value == "version" {
			found = value
		}
	})
	var version uint64
	switch {
	case l.Refused(l.Root()):
	case found == nil:
		l.Fault(l.Root(), "version: want version: %d, the only one that there is", Version)
	default:
		if l.Number(&version)(found); version != Version && !l.Refused(found) {
			l.Fault(found, "version %d is none that this program reads: write version: %d, or use a program that knows it", version, Version)
		}
	}
}

func (l Limits) withDefaults() Limits {
	for _, x := range []struct {
		have     *uint64
		fallback uint64
	}{{&l.Runs, DefaultRuns}, {&l.Ticks, DefaultTicks}, {&l.Rows, DefaultRows}, {&l.Bytes, DefaultBytes}, {&l.Input, DefaultInput}} {
		if *x.have == 0 {
			*x.have = x.fallback
		}
	}
	return l
}

// path returns the path of a file that the document names.
func (l *loader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// world reads what the runs begin with.
func (l *loader) world() error {
	n, from := l.at["world"], l.at["from"]
	switch {
	case n == nil && from == nil:
		l.Fault(l.Root(), "world: want the directory of a world.yaml, or from: DIR@MOMENT, a moment of a world")
		return nil
	case n != nil && from != nil:
		l.Fault(from, "world and from do not go together: runs begin with a new world, or at a moment of one")
		return nil
	case from != nil:
		return l.branch(from)
	}
	name := "."
	if l.Text(&name)(n); l.Refused(n) {
		return nil
	}
	file := worldFile(l.path(name))
	loaded, err := local.Load(file, l.opts)
	if err != nil {
		if errors.As(err, new(*source.Error)) {
			l.Fault(n, "the world is not valid: worldctl validate %s says where: %s", file, firstLine(err))
			return nil
		}
		l.Fault(n, "there is no world.yaml in %q: name a directory that has one, or the file", name)
		return nil
	}
	l.base, l.spec.dir = rules{loaded.Manifest, loaded.Contents}, filepath.Dir(file)
	return nil
}

// worldFile returns the world file that is meant by a path to it or to its directory.
func worldFile(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, local.ManifestFile)
	}
	return path
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// seeds reads the seeds: a list of them, how many from 1 on, or a range.
func (l *loader) seeds() {
	n := l.at["seeds"]
	if n == nil {
		l.Fault(l.Root(), "seeds: want how many, such as seeds: 50, a list of them, or {first: 1, count: 50}")
		return
	}
	most := l.spec.Limits.Runs
	first, count := uint64(1), uint64(0)
	switch n.Kind {
	case yaml.SequenceNode:
		seen := make(map[uint64]bool)
		for _, item := range l.Items(n) {
			var seed uint64
			if l.Number(&seed)(item); seen[seed] && !l.Refused(item) {
				l.Fault(item, "the seed %d is there twice: its runs would be the same", seed)
			}
			seen[seed] = true
			l.spec.Seeds = append(l.spec.Seeds, seed)
		}
		if len(l.spec.Seeds) == 0 && !l.Refused(n) {
			l.Fault(n, "seeds: want at least one")
		}
		return
	case yaml.MappingNode:
		l.Mapping(n, map[string]func(*yaml.Node){"first": l.Number(&first), "count": l.Count(&count)})
		if count == 0 && !l.Refused(n) {
			l.Fault(n, "count: want how many seeds")
			return
		}
	default:
		l.Count(&count)(n)
	}
	switch {
	case l.Refused(n):
		return
	case count > most:
		l.Fault(n, "%d seeds are more than the %d runs of an experiment: limits.runs raises that", count, most)
		return
	case first+count < first:
		l.Fault(n, "%d seeds from %d on are beyond 64 bits", count, first)
		return
	}
	for i := range count {
		l.spec.Seeds = append(l.spec.Seeds, first+i)
	}
}

// stop reads when a run ends.
func (l *loader) stop() {
	n := l.at["stop"]
	if n == nil {
		l.spec.Stop, l.bounded = Stop{Ticks: l.spec.Limits.Ticks, Idle: true}, true
		return
	}
	s := &l.spec.Stop
	l.Mapping(n, map[string]func(*yaml.Node){
		"ticks": l.Count(&s.Ticks), "idle": l.Boolean(&s.Idle),
		"when": func(w *yaml.Node) { l.at["when"] = w; l.Expression(&s.When)(w) },
	})
	switch {
	case l.Refused(n):
	case s.Ticks == 0 && !s.Idle && s.When == "":
		l.Fault(n, "stop: want at least one of ticks, idle: true and when")
	case s.Ticks > l.spec.Limits.Ticks:
		l.Fault(n, "stop.ticks is %d, more than the %d of a run: limits.ticks raises that", s.Ticks, l.spec.Limits.Ticks)
	case s.Ticks == 0:
		s.Ticks, l.bounded = l.spec.Limits.Ticks, true
		s.Idle = true // there is nothing to wait for where it is idle
	}
}

// endless refuses what would go on to limits.ticks: a program of inputs may have something for each tick.
func (l *loader) endless() {
	if l.bounded && l.spec.Stop.When == "" && l.spec.inputs.program != nil {
		l.Fault(cmp.Or(l.at["stop"], l.at["inputs"]), "%s may have something for any tick, so no run is idle before its last one: want stop.ticks, or stop.when",
			l.spec.inputs.file)
	}
}

// effects reads what answers effects.
func (l *loader) effects() {
	n := l.at["effects"]
	e := &l.spec.Effects
	defer l.performs()
	if n == nil {
		return
	}
	modes := []string{EffectsStub, EffectsRecorded, EffectsLive}
	l.Mapping(n, map[string]func(*yaml.Node){
		"mode": func(m *yaml.Node) {
			if l.Text(&e.Mode)(m); !slices.Contains(modes, e.Mode) && !l.Refused(m) {
				l.Fault(m, "want one of %s, not %q", strings.Join(modes, ", "), e.Mode)
			}
		},
		"record": func(r *yaml.Node) {
			if l.Text(&e.Record)(r); !filepath.IsLocal(e.Record) && !l.Refused(r) {
				l.Fault(r, "%q is not beside the experiment: want the name of a file there, such as answers", e.Record)
			}
		},
		"budget": func(b *yaml.Node) {
			l.Mapping(b, map[string]func(*yaml.Node){
				"calls": l.Count(&e.Budget.Calls), "tokens": l.Count(&e.Budget.Tokens), "micros": l.Count(&e.Budget.Micros),
			})
		},
	})
}

// performs reads what is performed, which the document alone never decides.
func (l *loader) performs() {
	e, at := &l.spec.Effects, cmp.Or(l.at["effects"], l.Root())
	if e.Mode, e.Live = cmp.Or(l.mode, e.Mode), l.live; len(l.live) > 0 && l.mode == "" {
		e.Mode = EffectsLive
	}
	switch {
	case e.Mode == EffectsLive && len(l.live) == 0:
		l.Fault(at, "effects: mode is live, and an experiment alone performs nothing: type --live KIND for each kind of effects that may be performed, for real, or --effects %s", EffectsRecorded)
		return
	case e.Mode == EffectsLive && e.Budget.Calls == 0 && !l.Refused(at):
		l.Fault(at, "effects: without budget.calls nothing is performed: want effects: {budget: {calls: N}}, so many attempts by all runs together, or --effects %s", EffectsRecorded)
		return
	case e.Mode != EffectsLive && len(l.live) > 0:
		l.Fault(at, "effects: mode is %s, which performs nothing, and %s is to be live", e.Mode, strings.Join(l.live, ", "))
		return
	}
	for _, name := range l.live {
		_, err := manifest.Live{name}.In(l.base.manifest)
		for _, v := range l.spec.Rules {
			if m := v.loaded.manifest; err != nil && m != nil {
				if _, here := (manifest.Live{name}).In(m); here == nil {
					err = nil
				}
			}
		}
		if err != nil {
			l.Fault(at, "--live: %s", err)
		}
	}
}

// count refuses what is too many runs, or too many rows of one.
func (l *loader) count() {
	s := l.spec
	runs := uint64(1)
	for _, factor := range []int{len(s.Seeds), len(s.Rules), len(s.Values)} {
		if runs *= uint64(factor); runs > s.Limits.Runs {
			l.Fault(l.Root(), "it has %d seeds, %d variants and %d points of params: more than the %d runs of an experiment; limits.runs raises that",
				len(s.Seeds), len(s.Rules), len(s.Values), s.Limits.Runs)
			return
		}
	}
}

// rehearse makes the rules of each variant and point once, so that what they refuse is
// known before the first run.
func (l *loader) rehearse() {
	names := make(map[manifest.Hash]string) // by the rules of the first point: where these are equal all are
	for v, variant := range l.spec.Rules {
		for p := range l.spec.Values {
			rules, err := l.spec.rulesOf(v, p)
			var hash manifest.Hash
			if err == nil && p == 0 { // params are no part of what rules look at
				err = world.RefuseNames(rules.manifest, rules.content, nil)
			}
			if err == nil && p == 0 {
				hash, err = rules.manifest.Hash()
			}
			if err != nil {
				l.Fault(l.variantNode(variant.Name), "the variant %s is not valid: %s", variant.Name, oneLine(err))
				break
			}
			if p > 0 {
				continue
			}
			if first, ok := names[hash]; ok && l.spec.inputs.program == nil { // which is told the variant
				l.Fault(l.variantNode(variant.Name), "the variant %s has the rules of %s: its runs would be the same", variant.Name, first)
				break
			}
			names[hash] = variant.Name
		}
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// variantNode returns where a variant stands.
func (l *loader) variantNode(name string) *yaml.Node {
	found := l.Root()
	if n := l.at["variants"]; n != nil {
		l.Entries(n, func(key, _ *yaml.Node) {
			if key.Value == name {
				found = key
			}
		})
	}
	return found
}

// valid reports why a manifest is not valid.
func valid(m *manifest.Manifest) error {
	if faults := m.Validate(); len(faults) > 0 {
		return &manifest.FaultsError{Faults: faults}
	}
	return nil
}
