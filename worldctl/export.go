package worldctl

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
)

const exportText = `Write the journal to a file, - for stdout. The receipt keys are not part of it. A file
that is there already is written over with --force only.

  bundle       all of it, signed, in one file: to import it, or to verify it offline
  jsonl        the stored bytes and what they say, JSON lines
  cloudevents  a CloudEvents 1.0 event for each record, JSON lines
  otlp         OpenTelemetry spans, JSON lines as the Collector reads and writes them
  html         a page for any browser, with all that worldctl ui shows of it, and
               what verify says

A bundle can be a part of the journal, from one record to another, and payloads over 4 KiB can be left out of it: their hashes stay,
and what was signed is what it was. A page asks nobody for anything; it shows worlds of
at most 50,000 records, and can be read only. What was redacted is in neither, and where
cells cannot be computed any more without it, the page does not have them.`

func newExportCommand(c *cli) *cobra.Command {
	var format string
	var to *target
	var bundled bundleFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the journal to a file: to import it, to read it, or to prove it",
		Long:  exportText,
		Example: `  worldctl export town.bundle
  worldctl export - --format jsonl | head
  worldctl export traces.jsonl --format otlp
  worldctl export march.bundle --from march --redact '#1204'
  worldctl export town.html --format html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && c.origin.Width > 0 && format == formatBundle {
				return usagef("worldctl export FILE --format "+format, "stdout is a terminal, and %s is no text", format)
			}
			if format == formatBundle {
				return c.with(func(lw *local.World) error { return c.exportBundle(cmd.Context(), lw, to, args[0], &bundled) })
			}
			if err := bundled.refuse(cmd); err != nil {
				return err
			}
			if format == formatHTML {
				return c.with(func(lw *local.World) error { return c.exportHTML(cmd.Context(), lw, to, args[0]) })
			}
			f := local.Format(format)
			if !slices.Contains(local.Formats(), f) {
				return usagef("type --format with one of "+formats(), "%q is not a format of exports", format)
			}
			return c.with(func(lw *local.World) error {
				report, stop := c.progress("records", uint64(lw.Head().ID))
				write := func(w io.Writer) error { return lw.Export(heeding(cmd.Context(), w), f, report) }
				err := to.write(args[0], write)
				stop()
				if err == nil && args[0] != "-" {
					c.note("%d records are in %s", lw.Head().ID, args[0])
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", formatBundle, "`FORMAT` of the file: "+formats())
	to = c.savesTo(cmd, firstOf)
	bundled.add(cmd)
	return cmd
}

// formats lists the formats of exports.
func formats() string {
	names := []string{formatBundle}
	for _, f := range local.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(append(names, formatHTML), ", ")
}
