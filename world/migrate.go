package world

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
)

// migrated is what the code that takes over has made of a cell's state. Nothing
// has changed yet.
type migrated struct {
	cell  *cell
	state []byte
	gas   uint64
}

// migrate lets the code of a reducer take over the states of cells, which other
// code has left. Cells whose reducer does not migrate keep their state.
func (k *kernel) migrate(next *rules, cells []*cell) ([]migrated, error) {
	slices.SortFunc(cells, func(a, b *cell) int { return cmp.Compare(a.name, b.name) })
	var out []migrated
	for _, c := range cells {
		rule := next.reducers[c.id().Reducer]
		if rule == nil || len(c.state) == 0 {
			continue
		}
		if rule.impl == nil {
			return nil, next.lacks
		}
		impl, ok := rule.impl.(reducer.Migrator)
		if !ok {
			continue
		}
		m, err := k.migrateOne(impl, rule, c, next.guard)
		if next.guard.stop(err, "the migration of cell "+c.name, k.last) || next.guard.keep(uint64(len(m.state)), "the migrated states") != nil {
			return nil, next.guard.ended()
		}
		if err != nil {
			return nil, refuse(ErrMigration, c.name, "%v", err)
		}
		next.guard.use(m.gas)
		out = append(out, m)
	}
	return out, nil
}

func (k *kernel) migrateOne(impl reducer.Migrator, rule *reducerRule, c *cell, g *guard) (migrated, error) {
	in := reducer.Input{Cell: c.id(), State: bytes.Clone(c.state), Time: k.now, Limits: rule.limits, Bounds: g.migrationBounds()}
	var out reducer.Output
	if err := reducer.Migrate(impl, &in, &out); err != nil {
		return migrated{}, err
	}
	if k.paranoid {
		var again reducer.Output
		if err := reducer.Migrate(impl, &in, &again); err != nil || !sameOutput(&out, &again) {
			return migrated{}, fmt.Errorf("migrate is not deterministic: two runs on the same state gave different ones")
		}
	}
	if len(out.State) == 0 || string(out.State) == canon.Null {
		return migrated{}, fmt.Errorf("migrate gave no state")
	}
	return migrated{cell: c, state: out.State, gas: out.Gas}, out.CheckLimits(rule.limits)
}

// takeOver makes migrated states those of their cells.
func (k *kernel) takeOver(all []migrated, cause journal.Seq) {
	for _, m := range all {
		b := journal.Migrated{Version: journal.V(journal.BodyVersion), Cell: m.cell.name, N: m.cell.n, State: canon.Sum(m.state), Gas: m.gas}
		k.writeRecord(journal.KindMigrated, cause, &b)
		m.cell.state = m.state
		k.touch(m.cell)
	}
}
