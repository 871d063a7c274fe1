package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// clientEvent is an event of a client.
type clientEvent struct {
	Of string `cbor:"to" json:"to"` // the client, and its cell
	N  uint64 `cbor:"n" json:"n"`   // from 0
}

// tally is what has come of a client.
type tally struct {
	Count uint64 `cbor:"count"`
	Wrong uint64 `cbor:"wrong"` // events that were not the next one
}

func tallied(_ *reducer.Context, t tally, e clientEvent) (tally, error) {
	if e.N != t.Count {
		t.Wrong++
	}
	t.Count++
	return t, nil
}

// tallyOptions opens a world of tallies.
func tallyOptions() local.Options {
	return local.Options{Reducers: reducer.Registry{"tally@1": reducer.Typed(1, tallied)}}
}

// tallies makes a world that counts the events of each client.
func (r *run) tallies(dir string) *local.World {
	return r.world(dir, rules("tally", inGo("tally"), "client.sent"), "", tallyOptions())
}

// driven keeps a world running until stop, which returns why it could not go on.
func driven(ctx context.Context, lw *local.World) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for {
			before := lw.Head().ID
			p, err := lw.Next(ctx)
			if err == nil && (p == world.Waiting || p == world.Idle) {
				err = lw.Await(ctx, before) // this world has no effects to wait for
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return lw.Sync()
	}
}

// errNotExact says that events were lost, doubled or disordered.
var errNotExact = errors.New("the world does not have what was accepted")

// holdTallies holds the cells of clients to what was accepted of each.
func holdTallies(lw *local.World, accepted []uint64) error {
	cells := make([]world.CellView, len(accepted))
	lw.View(func(w *world.Moment) {
		for i := range cells {
			cells[i], _ = w.Cell(reducer.Cell{Reducer: "tally", Key: "c" + strconv.Itoa(i)})
		}
	})
	for i, want := range accepted {
		var got tally
		if len(cells[i].State) > 0 {
			var err error
			if got, err = reducer.Decode[tally](cells[i].State); err != nil {
				return err
			}
		}
		if got != (tally{Count: want}) {
			return fmt.Errorf("%w: of client %d %d events were accepted, %d came, %d of them not in their turn",
				errNotExact, i, want, got.Count, got.Wrong)
		}
	}
	return nil
}
