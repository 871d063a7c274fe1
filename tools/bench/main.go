// Command bench measures worldkernel on this machine, each figure beside its
// ceiling in the same run; docs/performance.md says what came of it. It is a
// module of its own because of what it compares with: SQLite takes a C compiler.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// collectorPercent is what worldctl sets, too.
const collectorPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand(&program{stdout: os.Stdout, stderr: os.Stderr}).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// program is one run: its streams and its global flags.
type program struct {
	stdout, stderr io.Writer
	output         string
	quiet          bool
}

func newRootCommand(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine, each figure beside its ceiling in the same run",
		Long: `Measure this machine, each figure beside its ceiling in the same run.

Several rounds are measured, and the medians shown with the least and the most.`,
		Example:       "  bench kernel\n  bench effects --cells 100 --effects 100 --rounds 5 -o json",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVarP(&p.output, "output", "o", "table", "`FORM` of the figures: table or json")
	root.PersistentFlags().BoolVarP(&p.quiet, "quiet", "q", false, "nothing on stderr but errors")
	root.AddCommand(newKernelCommand(p), newEffectsCommand(p), newSnapshotCommand(p), newMomentCommand(p),
		newShadowCommand(p), newVerifyCommand(p), newSubmitCommand(p),
		newLongCommand(p), newIntentsCommand(p), newSweepCommand(p), newPeersCommand(p), newPostgresCommand(p), newGatewayCommand(p))
	return root
}

// note tells whoever waits how far it is.
func (p *program) note(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(p.stderr, format+"\n", args...)
	}
}

// figures prints what was measured.
func (p *program) figures(name string, figures []figure) error {
	switch p.output {
	case "table":
		t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "figure\tmedian\tleast\tmost\tunit\treach")
		var said []string
		for _, f := range figures {
			if f.Text != "" {
				said = append(said, f.Name+": "+f.Text)
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, cmp.Or(number(f.Value), "0"), number(f.Least), number(f.Most), f.Unit, f.Reach)
		}
		err := t.Flush()
		for _, line := range said {
			fmt.Fprintln(p.stdout, line)
		}
		return err
	case "json":
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(struct {
			Bench   string   `json:"bench"`
			CPUs    int      `json:"cpus"`
			Go      string   `json:"go"`
			Figures []figure `json:"figures"`
		}{name, runtime.NumCPU(), runtime.Version(), figures})
	}
	return fmt.Errorf("%q is not a form of output: type -o table or -o json", p.output)
}

func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
