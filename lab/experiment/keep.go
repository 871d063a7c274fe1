package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// ErrOtherRun says that a run came to something else than the results have.
var ErrOtherRun = errors.New("the run is not what it was")

// Kept is a run that was made again as a world on disk.
type Kept struct {
	Run           RunID      `json:"run"`
	Variant       string     `json:"variant"`
	Seed          uint64     `json:"seed"`
	Tick          uint64     `json:"ticks"`
	Stopped       string     `json:"stopped"`
	Error         string     `json:"error,omitempty"`
	ExecutionHash canon.Hash `json:"execution_hash"`
	StateRoot     canon.Hash `json:"state_root"`
	Recorded      bool       `json:"recorded"` // the results have it, and it is the same
}

// Keep makes a run again as a world in a directory that is empty or not there, and compares
// it with the results in o.Dir, where these have it: ErrOtherRun, and no world, where it came
// to something else. Effects are answered by what was recorded; nothing is performed.
func Keep(ctx context.Context, s *Spec, id RunID, o Options, dir string) (kept *Kept, err error) {
	r, err := lookAt(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.plan.Hash != s.Hash {
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrOtherSpec)
	}
	was, err := r.get(id)
	if err != nil {
		return nil, err
	}
	again := *s
	if again.Effects.Mode == EffectsLive {
		again.Effects.Mode = EffectsRecorded
	}
	a, err := openAnswers(&again, o.Dir, o.Worlds)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	k := &keeper{spec: &again, plan: s.Planned(id), answers: a, opts: o.Worlds}
	err = k.make(ctx, dir, func(result *Result) error {
		kept = keptOf(&again, result)
		if was == nil {
			return nil
		}
		kept.Recorded = true
		return s.same(was, result)
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

func keptOf(s *Spec, r *Result) *Kept {
	return &Kept{
		Run: r.ID, Variant: s.Variants[r.Variant], Seed: r.Seed, Tick: r.Tick, Stopped: r.Stopped, Error: r.Error,
		ExecutionHash: r.ExecutionHash, StateRoot: r.StateRoot,
	}
}

// maxChanges is how much of what is not as it was is said.
const maxChanges = 5

// same compares all that is kept of a run with what was, and says what is another.
func (p *Plan) same(was, is *Result) error {
	var changes []string
	compare := func(what string, was, is any) {
		if was != is {
			changes = append(changes, fmt.Sprintf("%s was %s, and is %s", what, shown(was), shown(is)))
		}
	}
	row := func(when string, was, is []any) {
		for i := range min(len(was), len(is)) {
			compare(p.Columns[i].Name+" "+when, was[i], is[i])
		}
	}
	compare("error", was.Error, is.Error)
	compare("stopped", was.Stopped, is.Stopped)
	compare("ticks", was.Tick, is.Tick)
	row("at its end", was.Last, is.Last)
	for i := range min(len(was.Rows), len(is.Rows)) {
		compare("tick of row "+strconv.Itoa(i+1), was.Rows[i].Tick, is.Rows[i].Tick)
		row("at tick "+strconv.FormatUint(is.Rows[i].Tick, 10), was.Rows[i].Values, is.Rows[i].Values)
	}
	compare("number of rows", len(was.Rows), len(is.Rows))
	compare("sent", was.Sent, is.Sent)
	compare("halted", was.Halted, is.Halted)
	compare("skipped", was.Skipped, is.Skipped)
	compare("in_doubt", was.InDoubt, is.InDoubt)
	compare("failed_effects", was.FailedEffects, is.FailedEffects)
	compare("first_failure", was.firstFailure(), is.firstFailure())
	compare("execution_hash", was.ExecutionHash, is.ExecutionHash)
	compare("state_root", was.StateRoot, is.StateRoot)
	if len(changes) == 0 {
		return nil
	}
	if more := len(changes) - maxChanges; more > 0 {
		changes = append(changes[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("run %d: %w: %s", is.ID, ErrOtherRun, strings.Join(changes, "; "))
}

// shown prints what is compared.
func shown(v any) string {
	if h, ok := v.(canon.Hash); ok {
		return h.String()
	}
	text, _ := json.Marshal(v) // numbers, texts and truth values
	return string(text)
}

// keeper makes a run on disk.
type keeper struct {
	spec    *Spec
	plan    Planned
	answers *answers
	opts    local.Options
}

// make makes the world, lives it, and has its result judged.
func (k *keeper) make(ctx context.Context, dir string, judge func(*Result) error) error {
	rules, err := k.spec.rulesOf(k.plan.Variant, k.plan.Point)
	if err != nil {
		return err
	}
	c, err := k.spec.newCourse(k.plan)
	if err != nil {
		return err
	}
	if k.opts.Instead, err = k.answers.instead(k.plan, &rules, &c.doubts); err != nil {
		return err
	}
	begin := func(lw *local.World) error {
		result, err := k.live(ctx, c, lw)
		if err != nil {
			return err
		}
		return judge(result)
	}
	if k.spec.from != nil {
		amend, err := rules.amend(&k.spec.base)
		if err != nil {
			return err
		}
		return k.fork(ctx, dir, slices.AppendSeq([]string{}, maps.Keys(rules.manifest.Effects)), amend, begin)
	}
	v := &k.spec.Rules[k.plan.Variant]
	from := k.spec.dir
	if v.file != "" {
		from = filepath.Dir(v.file)
	}
	loaded := &source.Loaded{Manifest: rules.manifest, Contents: rules.contents}
	return local.CreateCopy(loaded, from, dir, local.CreateOptions{Seed: &k.plan.Seed}, k.opts, func(lw *local.World) error {
		return errors.Join(begin(lw), k.source(lw, v))
	})
}

// live drives the world on disk as the one in memory was.
func (k *keeper) live(ctx context.Context, c *course, lw *local.World) (*Result, error) {
	result, err := local.Change(lw, func(w *world.World) (*Result, error) { return c.live(ctx, w) })
	return result, errors.Join(err, lw.Sync())
}

// source leaves a world.yaml that says what is in force, or none: a world needs none.
func (k *keeper) source(lw *local.World, v *Variant) error {
	path := filepath.Join(lw.Dir(), local.ManifestFile)
	if v.file != "" {
		if err := k.write(path, v); err != nil {
			return err
		}
		if lw.CheckSource() == nil {
			return nil
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// write writes the world file of a variant with the params of the run.
func (k *keeper) write(path string, v *Variant) error {
	data, err := os.ReadFile(v.file)
	if err != nil {
		return err
	}
	set := k.spec.params(&k.plan)
	if len(set) > 0 {
		if data, err = withYAML(data, set); err != nil {
			return err
		}
	}
	return os.WriteFile(path, data, 0o666) //nolint:gosec // as others of a world's directory
}

// withYAML returns a world file with params set.
func withYAML(data []byte, set map[string]any) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	for name, value := range set {
		reducer, path, _ := splitParam(name)
		at := doc.Content[0]
		for _, step := range append([]string{"reducers", reducer, "params"}, path...) {
			at = childOf(at, step)
			if at == nil {
				return data, nil // the file says it otherwise: whoever reads it will see
			}
		}
		var node yaml.Node
		if err := node.Encode(plain(value)); err != nil {
			return nil, err
		}
		*at = node
	}
	return yaml.Marshal(&doc)
}

func childOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// plain returns a value as YAML has it.
func plain(v any) any {
	if text, err := canon.Marshal(v); err == nil {
		if decoded, err := canon.Decode(text); err == nil {
			return decoded
		}
	}
	return v
}
