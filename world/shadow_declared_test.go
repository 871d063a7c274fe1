package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// What was answered to an effect with another config, adapter or schema is no answer to the
// candidate's: what would have followed is unknown, whatever came of it in the history.
func TestShadowAnswersNoEffectThatIsDeclaredOtherwise(t *testing.T) {
	config := func(e *manifest.Effect) { e.Config = mustData(t, map[string]string{"model": "other"}) }
	for name, x := range map[string]struct {
		change  func(*manifest.Effect)
		unknown bool
	}{
		"config":  {config, true},
		"adapter": {func(e *manifest.Effect) { e.Adapter = "other" }, true},
		"timeout": {func(e *manifest.Effect) { e.Timeout = 7e9 }, false},
		"retries": {func(e *manifest.Effect) { e.Retry.Attempts = 2 }, false},
	} {
		for what, ends := range map[string]func(*play, receipt.Key){
			"answered": func(p *play, _ receipt.Key) { p.reply(worldtest.OK(nil)) },
			"failed":   func(p *play, _ receipt.Key) { p.reply(worldtest.Fail(nil)) },
			"resolved": func(p *play, key receipt.Key) { p.lose(); p.decide(key, journal.Executed) },
			"late":     func(p *play, _ receipt.Key) { p.out.Reply(p.lose(), worldtest.OK(nil)); p.Drive() },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				p := live(t)
				ends(p, p.ask())
				r, err := p.Rehearse(t.Context(), p.changed(tool(x.change)), nil, world.ShadowConfig{})
				require.NoError(t, err)
				if !x.unknown {
					require.Zero(t, r.Counts.Unknown)
					require.Zero(t, r.Counts.Cells)
					return
				}
				require.Len(t, r.Unknown, 1)
				require.Contains(t, r.Unknown[0].Why, "another adapter, config or schema")
				require.Zero(t, r.CostIs)
			})
		}
	}
}
