package worldctl

import (
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

type versions struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Kernel   string `json:"kernel"` // the engines that a world's record 1 names
	Starlark string `json:"starlark"`
	CEL      string `json:"cel"`

	Engines map[string][]string `json:"engines"` // all versions, oldest first: worlds of each are replayed
}

func version() versions {
	v := versions{
		Version: "unknown", Go: runtime.Version(),
		Kernel: world.KernelVersion, Engines: world.Carried(),
	}
	newest := func(engine string) string { return v.Engines[engine][len(v.Engines[engine])-1] }
	v.Starlark, v.CEL = newest(manifest.EngineStarlark), newest(manifest.EngineCEL)
	if build, ok := debug.ReadBuildInfo(); ok {
		v.Version = build.Main.Version
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

func newVersionCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "version",
		RunE: func(*cobra.Command, []string) error {
			v := version()
			return c.object("version", v, func() {
				facts := [][2]any{{"worldctl", v.Version}, {"commit", v.Commit}, {"go", v.Go}, {"kernel", v.Kernel}}
				for _, engine := range slices.Backward(slices.Sorted(maps.Keys(v.Engines))) {
					facts = append(facts, [2]any{engine, strings.Join(v.Engines[engine], "\n")})
				}
				c.facts(facts...)
			})
		},
	}
}
