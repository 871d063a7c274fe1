package local_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// A directory with a world.yaml becomes a world once, with Create. After that
// three lines run it: Open, Submit, Run.
func Example() {
	ctx := context.Background()
	dir := copied("counter")
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	check(local.Create(dir, local.CreateOptions{}, local.Options{}))

	w, err := local.Open(dir, local.Options{})
	check(err)
	_, err = w.Submit(ctx, "counter.added", map[string]any{"name": "tea", "by": 2})
	check(err)
	check(w.Run(ctx))

	w.View(func(now *world.Moment) {
		tea, _ := now.Cell(reducer.Cell{Reducer: "counter", Key: "tea"})
		state, err := json.Marshal(tea.State)
		check(err)
		fmt.Printf("tick %d: %s is %s\n", now.Status().Time, tea.Cell, state)
	})
	check(w.Close())
	// Output: tick 1: counter/tea is {"times":1,"total":2}
}

// A manifest that nobody has proposed can be tried on the history, too, and no
// record tells of it. Where a report ended it can be computed again, whatever has
// happened since.
func ExampleWorld_Rehearse() {
	ctx := context.Background()
	dir, w := counter(ctx)
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory

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

	add(ctx, w, 3)
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

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// copied puts an example world into a directory of its own.
func copied(example string) string {
	dir, err := os.MkdirTemp("", example+"-")
	check(err)
	check(examples.Copy(example, dir))
	return dir
}

// counter returns the world of Example, after its first event, and its directory.
func counter(ctx context.Context) (string, *local.World) {
	dir := copied("counter")
	check(local.Create(dir, local.CreateOptions{}, local.Options{}))
	w, err := local.Open(dir, local.Options{})
	check(err)
	add(ctx, w, 2)
	return dir, w
}

func add(ctx context.Context, w *local.World, by int) {
	_, err := w.Submit(ctx, "counter.added", map[string]any{"name": "tea", "by": by})
	check(err)
	check(w.Run(ctx))
}
