package local_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// A manifest that nobody has proposed can be tried on the history, too, and no
// record tells of it. Where a report ended it can be computed again, whatever has
// happened since.
func ExampleWorld_Rehearse() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "counter-")
	check(err)
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	check(examples.Copy("counter", dir))
	check(local.Create(dir, local.Birth{}, local.Options{}))
	w, err := local.Open(dir, local.Options{})
	check(err)
	_, err = w.Submit(ctx, "counter.added", map[string]any{"name": "tea", "by": 2})
	check(err)
	check(w.Run(ctx))

	source := []byte(`def reduce(ctx, state, event):
    return {"times": 1, "total": 2 * event.data["by"]}
`)
	var next manifest.Manifest
	w.View(func(now *world.Moment) { next = *now.Manifest() })
	code := next.Reducers["counter"]
	code.Source = manifest.Hash(sha256.Sum256(source))
	next.Reducers = maps.Clone(next.Reducers)
	next.Reducers["counter"] = code
	files := map[manifest.Hash][]byte{code.Source: source}

	report, err := w.Rehearse(ctx, &next, files, world.ShadowConfig{})
	check(err)
	for _, c := range report.Cells {
		fmt.Printf("%s%s would be %s, not %s\n", c.Cell, c.State[0].Path, c.State[0].Is, c.State[0].Was)
	}

	_, err = w.Submit(ctx, "counter.added", map[string]any{"name": "tea", "by": 3})
	check(err)
	check(w.Run(ctx))
	then, err := w.At(journal.Seq(report.To))
	check(err)
	again, err := then.Rehearse(ctx, &next, files, world.ShadowConfig{From: report.Snapshot})
	check(err)
	was, err := report.Hash()
	check(err)
	is, err := again.Hash()
	check(err)
	fmt.Println("the same report:", was == is)
	check(w.Close())
	// Output:
	// counter/tea/total would be 4, not 2
	// the same report: true
}
