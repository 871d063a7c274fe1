package worldtest

import (
	"runtime/debug"
	"testing"

	"github.com/worldkernel/worldkernel/reducer"
)

// traced has reducers log where they panic, which no journal says.
func traced(t testing.TB, all reducer.Registry) reducer.Registry {
	out := make(reducer.Registry, len(all))
	for name, factory := range all { // order cannot show: each is wrapped by itself
		out[name] = func() reducer.Reducer {
			r := tracing{factory(), t}
			if m, ok := r.Reducer.(reducer.Migrator); ok {
				return tracingMigrator{r, m}
			}
			return r
		}
	}
	return out
}

type tracing struct {
	reducer.Reducer

	t testing.TB
}

// Reduce implements reducer.Reducer.
func (r tracing) Reduce(in *reducer.Input, out *reducer.Output) error {
	defer r.trace(in)
	return r.Reducer.Reduce(in, out)
}

func (r tracing) trace(in *reducer.Input) {
	if fault := recover(); fault != nil {
		r.t.Logf("%s panicked: %v\n%s", in.Cell, fault, debug.Stack())
		panic(fault)
	}
}

type tracingMigrator struct {
	tracing

	m reducer.Migrator
}

// Migrate implements reducer.Migrator.
func (r tracingMigrator) Migrate(in *reducer.Input, out *reducer.Output) error {
	defer r.trace(in)
	return r.m.Migrate(in, out)
}
