package star

import (
	"strings"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/reducer"
)

// NextCell returns one cell after another, false after the last one. The state is canonical
// and lasts until the call of the function ends.
type NextCell func() (name string, state reducer.Data, ok bool, err error)

// Prices, in bytes, of what stands for a cell.
const cellFilled = 160

// cellsArg is an argument that a program goes through.
type cellsArg struct {
	begin func() (next NextCell, stop func())
}

// OfCells returns cells as an argument: what a for statement goes through, as often as the
// program likes. begin begins to, and stop says that it is over. Each item has the fields
// id (reducer/key), reducer, key and state, which is decoded when it is first asked for.
func OfCells(begin func() (next NextCell, stop func())) Arg { return cellsArg{begin} }

func (a cellsArg) value(e *engine) (starlark.Value, error) {
	return &cells{object: "cells", e: e, begin: a.begin}, nil
}

type cells struct {
	object
	e     *engine
	begin func() (next NextCell, stop func())
}

// Iterate begins to go through the cells.
func (c *cells) Iterate() starlark.Iterator {
	next, stop := c.begin()
	return &cellIterator{c.e, next, stop}
}

type cellIterator struct {
	e    *engine
	next NextCell
	stop func()
}

// Next yields the next cell, and charges its memory.
func (i *cellIterator) Next(to *starlark.Value) bool {
	i.e.takeMemory(cellFilled)
	name, state, ok, err := i.next()
	if err != nil {
		i.e.end(err)
	}
	if ok {
		*to = &cell{object: "cell", e: i.e, id: name, data: state}
	}
	return ok
}

// Done ends the iteration.
func (i *cellIterator) Done() { i.stop() }

// cell is one of them.
type cell struct {
	object
	e     *engine
	id    string
	data  reducer.Data
	state starlark.Value // nil: not decoded yet
}

// Attr returns a field.
func (c *cell) Attr(name string) (starlark.Value, error) {
	of, key, _ := strings.Cut(c.id, "/")
	switch name {
	case "id":
		return starlark.String(c.id), nil
	case "key":
		return starlark.String(key), nil
	case "reducer":
		return starlark.String(of), nil
	case "state":
		if c.state == nil {
			v, err := c.e.dec.decode("state of "+c.id, c.data)
			if err != nil {
				return nil, err
			}
			c.state = v
		}
		return c.state, nil
	}
	return nil, noField(c, name)
}

// AttrNames returns the names that Attr knows.
func (c *cell) AttrNames() []string { return []string{"id", "key", "reducer", "state"} }
