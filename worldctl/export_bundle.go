package worldctl

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/local"
)

// formatBundle is not among local.Formats: it is made and read in other ways.
const formatBundle = "bundle"

// bundleFlags are those of export that go with bundles only.
type bundleFlags struct {
	from, to string
	withhold []string
	keyFile  string
}

func (b *bundleFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	addRange(cmd, &b.from, &b.to)
	f.StringArrayVar(&b.withhold, "redact", nil, "of a bundle: leave the payload of the record of this `MOMENT` out; may be repeated")
	f.StringVar(&b.keyFile, "key", "", "of a bundle: `FILE` of an Ed25519 SSH key that signs it besides the world's own")
}

// refuse returns an error where one of the flags was typed for another format.
func (b *bundleFlags) refuse(cmd *cobra.Command) error {
	for _, name := range []string{"from", "to", "redact", "key"} {
		if cmd.Flags().Changed(name) {
			return usagef("type --format "+formatBundle+", or leave it out", "--%s goes with bundles only", name)
		}
	}
	return nil
}

// bundleAnswer says what a bundle holds.
type bundleAnswer struct {
	File     string      `json:"file"`
	World    string      `json:"world"`
	From     journal.Seq `json:"from"`
	To       journal.Seq `json:"to"`
	Bytes    uint64      `json:"bytes"`
	Withheld int         `json:"withheld"` // payloads
	Signer   string      `json:"signer"`   // of its last checkpoint, as verify --trust takes it
}

// counting counts what is written to w.
type counting struct {
	w     io.Writer
	bytes uint64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += uint64(n)
	return n, err
}

func (c *cli) exportBundle(ctx context.Context, lw *local.World, to *target, name string, flags *bundleFlags) error {
	o, err := c.bundleOptions(lw, flags)
	if err != nil {
		return err
	}
	a := bundleAnswer{File: name, World: lw.Keys().World(), From: o.From, To: o.To, Withheld: len(o.Withhold)}
	var stop func()
	o.Progress, stop = c.progress("records", uint64(a.To-a.From+1))
	err = to.write(name, func(w io.Writer) error {
		counted := &counting{w: w}
		err := lw.ExportBundle(ctx, counted, o)
		a.Bytes = counted.bytes
		return err
	})
	stop()
	if err != nil {
		return notBundled(err)
	}
	if name == "-" {
		return nil
	}
	if a.Signer, err = signerOf(lw, o.Keys...); err != nil {
		return err
	}
	return c.object("export-bundle", a, func() { c.noteBundle(&a) })
}

func (c *cli) bundleOptions(lw *local.World, flags *bundleFlags) (o local.BundleOptions, err error) {
	if o.From, o.To, err = recordsOf(lw).Part(flags.from, flags.to); err != nil {
		return o, err
	}
	if o.From > o.To {
		return o, usagef("--from is the first record and --to the last", "there are no records from #%d to #%d", o.From, o.To)
	}
	for _, name := range flags.withhold {
		id, err := recordsOf(lw).At(name)
		if err != nil {
			return o, err
		}
		o.Withhold = append(o.Withhold, id)
	}
	o.Keys, err = c.signingKeys(flags.keyFile)
	return o, err
}

// notBundled says what to do where there is no bundle.
func notBundled(err error) error {
	switch {
	case errors.Is(err, local.ErrNoRange):
		return &fault{err: err, code: exitUsage, hint: "a bundle holds records of this world, and --redact names one of those in it: --from and --to say which"}
	case errors.Is(err, local.ErrInline):
		return hinted(err, "what is in a record is part of what is signed: leave it out with --from and --to, or show another record with worldctl prove")
	case errors.Is(err, local.ErrNoKeys):
		return hinted(err, "--key FILE signs it with a key of yours")
	}
	return err
}

// noteBundle tells what there is now, and what whoever gets it types.
func (c *cli) noteBundle(a *bundleAnswer) {
	c.note("records #%d to #%d are in %s, %s", a.From, a.To, a.File, inBytes(a.Bytes))
	if !c.quiet { // they have no world
		fmt.Fprintf(c.stderr, "to check it: worldctl verify %s --trust %s\n", a.File, a.Signer)
	}
}

// inBytes writes a size as people read it.
func inBytes(n uint64) string {
	for _, unit := range byteUnits() {
		if n >= unit.size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// signerOf returns the key that signs a world's checkpoints, or the first of others
// where it has none, as --trust takes it.
func signerOf(lw *local.World, others ...ed25519.PrivateKey) (string, error) {
	keys, err := lw.Signers()
	if err != nil {
		return "", err
	}
	if len(keys) > 0 {
		return checkpoint.FormatKey(lw.Keys().World(), keys[len(keys)-1])
	}
	return checkpoint.FormatKey(lw.Keys().World(), others[0].Public().(ed25519.PublicKey))
}
