package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// A directory with a world.yaml becomes a world once, with Create. After that
// three lines run it: Open, Submit, Run.
func Example() {
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

	w.View(func(now *world.Moment) {
		tea, _ := now.Cell(reducer.Cell{Reducer: "counter", Key: "tea"})
		state, err := json.Marshal(tea.State)
		check(err)
		fmt.Printf("tick %d: %s is %s\n", now.Status().Time, tea.Cell, state)
	})
	check(w.Close())
	// Output: tick 1: counter/tea is {"times":1,"total":2}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
