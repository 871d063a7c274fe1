package worldctl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// manifestAnswer is a manifest with its hash, which is that of its canonical
// CBOR and not of this form.
type manifestAnswer struct {
	Hash     manifest.Hash      `json:"hash"`
	Manifest *manifest.Manifest `json:"manifest"`
}

func newManifestShowCommand(c *cli) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the manifest in force: what the world runs, and what it may do",
		Example: `  worldctl manifest show
  worldctl manifest show --at t5 -o json`,
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			e, err := recordsOf(lw).InForce(at)
			if err != nil {
				return err
			}
			return c.object("manifest-show", manifestAnswer{e.Hash, e.Manifest}, func() { c.showManifest(e) })
		}),
	}
	addAt(cmd, &at, "as it was at this")
	return cmd
}

func newManifestHashCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "hash [FILE]",
		Short: "Print the hash of the manifest in force, or of the one that a world.yaml makes",
		Example: `  worldctl manifest hash
  worldctl manifest hash stricter.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.hashOf(args[0])
			}
			return c.with(func(lw *local.World) error { return c.showHash(recordsOf(lw).InForce(view.HeadName)) })
		},
	}
}

func (c *cli) hashOf(file string) (err error) {
	var worlds openWorlds
	defer func() { err = worlds.close(err) }()
	return c.showHash(c.editionOf(&worlds, file))
}

func (c *cli) showHash(e *view.Edition, err error) error {
	return answer(c, "manifest-hash", func(e *view.Edition) { fmt.Fprintln(c.stdout, e.Hash) })(e, err)
}

// showManifest says what a manifest has, each thing in a line.
func (c *cli) showManifest(e *view.Edition) {
	m := e.Manifest
	c.facts([2]any{"world", m.World}, [2]any{"version", m.Version}, [2]any{"hash", e.Hash},
		[2]any{"reducers", entries(m.Reducers, func(r manifest.Reducer) string {
			code := r.File
			if r.Engine == manifest.EngineGo {
				code = r.Name + " " + r.Version
			}
			return strings.TrimSpace(r.Engine+" "+code) + granted(r.Grants)
		})},
		[2]any{"events", strings.Join(slices.Sorted(maps.Keys(m.Events)), "\n")},
		[2]any{"effects", entries(m.Effects, func(f manifest.Effect) string {
			return strings.TrimSpace(f.Adapter+" "+f.Class) + ", in doubt: " + f.OnInDoubt
		})},
		[2]any{"capabilities", entries(m.Caps, func(k manifest.Cap) string {
			text := k.Type + atMost(k.Budget)
			if k.Expires != 0 {
				text += fmt.Sprintf(", expires at tick %d", k.Expires)
			}
			return text
		})},
		[2]any{"policies", policyLines(m.Policies)},
		[2]any{"governance", governanceLines(m.Governance)},
		[2]any{"limits", fmt.Sprintf("%d in flight, %d events a tick, mailbox %d%s",
			m.Limits.InFlight, m.Limits.EventsPerTick, m.Limits.Mailbox, atMost(m.Budget))})
}

// entries shows the entries of a section, sorted by name.
func entries[T any](section map[string]T, show func(T) string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(section)) {
		out = append(out, name+": "+show(section[name]))
	}
	return strings.Join(out, "\n")
}

func granted(caps []string) string {
	if len(caps) == 0 {
		return ", without capabilities"
	}
	return ", may use " + strings.Join(caps, ", ")
}

func atMost(b manifest.Budget) string {
	var text strings.Builder
	for _, unit := range []struct {
		n    uint64
		name string
	}{{b.Calls, "calls"}, {b.Tokens, "tokens"}, {b.Bytes, "bytes"}, {b.Micros, "micros"}} {
		if unit.n > 0 {
			fmt.Fprintf(&text, ", at most %d %s", unit.n, unit.name)
		}
	}
	return text.String()
}

// governanceLines says who changes the manifest, an approver a line.
func governanceLines(g manifest.Governance) string {
	text := "needs " + view.Count(g.Needed(), "approval", "")
	if g.FourEyes {
		text += ", four_eyes"
	}
	if len(g.Approvers) == 0 {
		return text + ", by any key"
	}
	text += ", by"
	for _, who := range g.Approvers {
		signer := view.SignerOf(who.Key, g)
		text += "\n" + nameOf(&signer)
	}
	return text
}

func policyLines(policies []manifest.Policy) string {
	var out []string
	for _, p := range policies {
		out = append(out, visible(fmt.Sprintf("%s: %s when %s", p.Name, p.Decide, p.When), ""))
	}
	return strings.Join(out, "\n")
}
