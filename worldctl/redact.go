package worldctl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newRedactCommand(c *cli) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "redact BLOB --reason TEXT",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parsePayload(args[0])
			if err != nil {
				return err
			}
			if strings.TrimSpace(reason) == "" {
				return world.ErrNoReason
			}
			return c.inDir(func(dir string, opts local.Options) error {
				done, err := local.Redact(cmd.Context(), dir, opts, p, reason, c.by)
				return answer(c, "redact", func(any) {
					fmt.Fprintf(c.stdout, "#%d %d bytes are destroyed: blob %s\n", done.Record, done.Bytes, done.Blob)
					c.note("exports, backups, forks and snapshots from before may hold copies")
					if c.placed != nil {
						c.note("so may the files and the log of the database, and backups of the database: docs/postgres.md, Retention")
					}
				})(done, err)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why: `TEXT`")
	addActor(cmd, "does it")
	return cmd
}

// parsePayload reads what a person names a payload by.
func parsePayload(name string) (local.Payload, error) {
	if id, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 64); err == nil && strings.HasPrefix(name, "#") {
		return local.Payload{Record: journal.Seq(id)}, nil
	}
	if ok, _ := regexp.MatchString("^[0-9a-f]{8,64}$", name); !ok {
		return local.Payload{}, usagef("worldctl tail -o jsonl shows records; write '#123' for the payload of one", "%q is not a payload: want 8 to 64 hex digits, or #123", name)
	}
	return local.Payload{Prefix: name}, nil
}
