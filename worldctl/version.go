package worldctl

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
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
		Kernel: world.KernelVersion, Starlark: star.Version, CEL: governance.Version, Engines: world.Carried(),
	}
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
		Use:     "version",
		Short:   "Print the versions of this program and of its engines",
		Long:    "Print the versions of this program and of its engines. A world\nreplays under the engines that its manifest names.",
		Example: "  worldctl version -o json",
		Args:    args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := version()
			return c.object("version", v, func() {
				c.facts([2]any{"worldctl", v.Version}, [2]any{"commit", v.Commit}, [2]any{"go", v.Go},
					[2]any{"kernel", v.Kernel},
					[2]any{"starlark", strings.Join(v.Engines[manifest.EngineStarlark], "\n")},
					[2]any{"cel", strings.Join(v.Engines[manifest.EngineCEL], "\n")},
					[2]any{"budget", strings.Join(v.Engines[manifest.EngineBudget], "\n")})
			})
		},
	}
}
