package worldctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
)

func newGCCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "gc",
		Short: "Delete what nothing refers to, and give its room back",
		Long: `Delete what nothing refers to: contents that no record and no manifest names,
versions that no snapshot needs, and what killed processes have left. All records
must be readable, those in archives too; else nothing is deleted.`,
		Example: "  worldctl gc",
		Args:    args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			dir, err := c.dir()
			if err != nil {
				return err
			}
			f, err := local.Collect(dir, c.options())
			if err != nil {
				return notOpened(dir, err)
			}
			return c.object("gc", f, func() {
				fmt.Fprintf(c.stdout, "%d blobs of %d bytes, %d versions, %d notes, %d leftovers; %d bytes before, %d after\n",
					f.Blobs, f.BlobBytes, f.Versions, f.Notes, f.Leftovers, f.BytesBefore, f.BytesAfter)
			})
		},
	}
}
