package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/memory"
	"github.com/worldkernel/worldkernel/world/source"
)

// wealth counts the cells of a world after its first ticks, and says by a hash what it did.
func wealth(ctx context.Context, file string, seed uint64) (cells int, hash string, err error) {
	loaded, err := source.Load(file)
	if err != nil {
		return 0, "", err
	}
	w, err := memory.New(loaded.Manifest, loaded.Contents, memory.Options{Seed: &seed})
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = w.Close() }()
	if _, err = w.Submit(ctx, world.Submission{Name: "bank.opened"}); err != nil {
		return 0, "", err
	}
	for range 5 {
		if err = w.Step(ctx); err != nil { // a tick; w.Run goes on until the world is idle
			return 0, "", err
		}
	}
	h, err := w.ExecutionHash()
	return len(w.Cells()), h.String(), err
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err = examples.Copy("wealth", dir); err != nil {
		log.Fatal(err)
	}
	cells, once, err := wealth(context.Background(), dir+"/world.yaml", 7)
	if err != nil {
		log.Fatal(err)
	}
	_, again, err := wealth(context.Background(), dir+"/world.yaml", 7)
	if err != nil {
		log.Fatal(err)
	}
	_, other, err := wealth(context.Background(), dir+"/world.yaml", 8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cells, "cells; equal seeds:", once == again, "others:", once == other)
	// Output: 201 cells; equal seeds: true others: false
}
