package worldctl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/ui"
	"github.com/worldkernel/worldkernel/world/local"
)

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
