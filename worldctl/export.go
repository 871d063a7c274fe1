package worldctl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/ui"
	"github.com/worldkernel/worldkernel/world/local"
)

func newExportCommand(c *cli) *cobra.Command {
	var format string
	var to *target
	var bundled bundleFlags
	cmd := &cobra.Command{
		Use: "export FILE",
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
	return advised(err, []advice{
		{local.ErrNoRange, exitUsage, "a bundle holds records of this world, and --redact names one of those in it: --from and --to say which"},
		{local.ErrInline, 0, "what is in a record is part of what is signed: leave it out with --from and --to, or show another record with worldctl prove"},
		{local.ErrNoKeys, 0, hintKeyOfYours},
	}...)
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

// formatHTML is not among local.Formats either: what of a world is in it the API says.
const formatHTML = "html"

// copied is what a page tells that was given away, of itself.
type copied struct {
	Made     string      `json:"made"`
	By       string      `json:"by"`
	Verified bool        `json:"verified"`
	Records  journal.Seq `json:"records"`
	Whole    journal.Seq `json:"whole"` // the last record up to which cells are in it
}

// htmlAnswer says what a page holds that can be given away.
type htmlAnswer struct {
	File     string       `json:"file"`
	World    string       `json:"world"`
	Records  journal.Seq  `json:"records"`
	Bytes    uint64       `json:"bytes"`
	Verified bool         `json:"verified"`
	Root     journal.Hash `json:"root"` // of the chain
}

// exportHTML writes the page with the world in it, and what verification says of it.
func (c *cli) exportHTML(ctx context.Context, lw *local.World, to *target, name string) error {
	report, stop := c.progress("answers", 0)
	defer stop()
	world, err := api.NewCopy(ctx, lw)
	if errors.Is(err, api.ErrLargeCopy) {
		return &fault{err: err, code: exitUsage, hint: "worldctl ui shows a world of any size, and --format bundle gives it away"}
	}
	if err != nil {
		return err
	}
	about := copied{
		Made: time.Now().UTC().Format("2006-01-02 15:04 MST"), By: "worldctl " + version().Version,
		Verified: world.Verified.OK(), Records: lw.Head().ID, Whole: world.Whole(),
	}
	a := htmlAnswer{File: name, World: world.World(), Records: about.Records, Verified: about.Verified, Root: world.Verified.EventChainRootHash}
	var page bytes.Buffer // whole or not at all, on stdout too
	err = ui.WriteCopy(&page, func(add func(string, []byte) error) error {
		text, err := json.Marshal(about)
		if err == nil {
			err = add("/copy", text)
		}
		n := uint64(0)
		counted := func(path string, answer []byte) error {
			n++
			report(n)
			return add(path, answer)
		}
		return cmp.Or(err, world.Each(ctx, counted))
	})
	if err = errors.Join(err, world.Close()); err != nil {
		return err
	}
	a.Bytes = uint64(page.Len())
	if err := to.write(name, func(w io.Writer) error { _, err := page.WriteTo(w); return err }); err != nil || name == "-" {
		return err
	}
	return c.object("export-html", a, func() {
		c.note("%d records are in %s, %s, a page for any browser", a.Records, a.File, inBytes(a.Bytes))
		if !a.Verified {
			c.note("what it shows does not hold: worldctl verify says why")
		}
	})
}
