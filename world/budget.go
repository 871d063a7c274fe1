package world

import (
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// budgets are the accounts of the budgets that are not a cell's. An account is
// opened when something is first drawn from it.
type budgets struct {
	Caps  map[string]*governance.Account `cbor:"caps,omitempty"`
	World *governance.Account            `cbor:"world,omitempty"`
}

// accounts returns the accounts that an intent draws on; false: no budget bounds
// it. Those of operators' cells are nobody's: an operator has no cell.
func (g *gate) accounts(e *receipt.Entry) (governance.Accounts, bool) {
	var a governance.Accounts
	ofCap, ofCell, ofWorld := g.rules.gate.Budgeted(e.Intent.Cap, reducerOf(e.Intent.Cell))
	if ofCap {
		if g.budgets.Caps == nil {
			g.budgets.Caps = make(map[string]*governance.Account)
		}
		if g.budgets.Caps[e.Intent.Cap] == nil {
			g.budgets.Caps[e.Intent.Cap] = new(governance.Account)
		}
		a.Cap = g.budgets.Caps[e.Intent.Cap]
	}
	if c := g.cells.named(e.Intent.Cell); ofCell && c != nil {
		of := c.toAsk()
		if of.account == nil {
			of.account = new(governance.Account)
		}
		g.touch(c)
		a.Cell = of.account
	}
	if ofWorld {
		if g.budgets.World == nil {
			g.budgets.World = new(governance.Account)
		}
		a.World = g.budgets.World
	}
	if !ofCap && !ofCell && !ofWorld {
		return a, false
	}
	g.rules.gate.Renew(&e.Intent, a, g.now)
	return a, true
}

// drawn returns the accounts that an intent draws on, for looking at: nil where nothing
// has been drawn yet.
func (g *gate) drawn(e *receipt.Entry) governance.Accounts {
	a := governance.Accounts{Cap: g.budgets.Caps[e.Intent.Cap], World: g.budgets.World}
	if c := g.cells.named(e.Intent.Cell); c != nil {
		a.Cell = c.asked().account
	}
	return a
}

// setAside sets need aside for the attempt of an intent that starts.
func (g *gate) setAside(e *receipt.Entry, need receipt.Cost) {
	if a, ok := g.accounts(e); ok {
		a.Reserve(need)
		e.Reserved = governance.Sum(e.Reserved, need)
	}
}

// settle ends what is set aside for an intent, as end does it with its accounts.
func (g *gate) settle(e *receipt.Entry, end func(governance.Accounts)) {
	if a, ok := g.accounts(e); ok && e.Reserved != (receipt.Cost{}) {
		end(a)
	}
	e.Reserved = receipt.Cost{}
}

// charge puts what an attempt is charged in the place of what was set aside for it. Where its
// receipt, by a record, says more than it can have used, its capability rests from there on.
func (g *gate) charge(e *receipt.Entry, r *receipt.Receipt, record journal.Seq) {
	has := e.Reserved
	if e.Accepted() != "" { // nothing was set aside for it
		has = receipt.Cost{}
	}
	charged, beyond := g.rules.gate.Charged(&e.Intent, has, r)
	if beyond {
		g.rest(e, r, charged, record)
	}
	if a, ok := g.accounts(e); ok && (has != (receipt.Cost{}) || e.Accepted() != "") {
		g.rules.gate.Settle(&e.Intent, a, has, charged, r)
	}
	if e.Accepted() == "" {
		e.Reserved = receipt.Cost{}
	}
}

// release gives back what is set aside for an intent of which is known that it
// did not happen.
func (g *gate) release(e *receipt.Entry) {
	if a, ok := g.accounts(e); ok {
		a.Release(e.Reserved)
	}
	e.Reserved = receipt.Cost{}
}

// asReleased has the budgets be as after release, until what it returns is called: for who
// asks what would be decided then.
func (g *gate) asReleased(e *receipt.Entry) (restore func()) {
	a := g.drawn(e)
	all, were := []*governance.Account{a.Cap, a.Cell, a.World}, [3]governance.Account{}
	for i, account := range all {
		if account != nil {
			were[i] = *account
		}
	}
	a.Release(e.Reserved)
	return func() {
		for i, account := range all {
			if account != nil {
				*account = were[i]
			}
		}
	}
}

// keep ends what is set aside for an attempt that is over, and of which nobody knows
// what it used.
func (g *gate) keep(e *receipt.Entry) {
	g.settle(e, func(a governance.Accounts) { a.Keep(e.Reserved) })
}

// mayGoOn reports whether the budgets leave room for the next attempt of an intent whose
// last one is over.
func (g *gate) mayGoOn(e *receipt.Entry) bool {
	return g.rules.gate.Gone(&e.Intent, g.drawn(e), g.now) == nil
}

// mayRepeat reports whether the budgets have a call for another attempt of an intent
// that is in doubt.
func (g *gate) mayRepeat(e *receipt.Entry) bool {
	return g.rules.gate.CanRepeat(&e.Intent, g.drawn(e), e.Reserved, g.now)
}

// disproved gives back what was set aside for an attempt in doubt that did not happen,
// but for its call, which may have left; and reports whether the budgets have room for
// another.
func (g *gate) disproved(e *receipt.Entry) bool {
	call := receipt.Cost{Calls: e.Reserved.Calls}
	g.settle(e, func(a governance.Accounts) {
		a.Keep(call)
		a.Release(governance.Rest(e.Reserved, call))
	})
	return g.mayGoOn(e)
}

// reckon holds all accounts against what is set aside for intents that have not ended:
// other rules are in force from now on, and may draw on them otherwise. For attempts that
// are under way or in doubt is set aside what a budget of these rules asks for and none
// before did.
func (f *effects) reckon() {
	held := make(map[*governance.Account]receipt.Cost)
	for _, e := range f.ledger.Unfinished() {
		if (e.State == receipt.StateInFlight || e.State == receipt.StateInDoubt) && e.Accepted() == "" {
			if need, _, _ := f.rules.gate.Room(&e.Intent, f.drawn(e), e.Reserved, nil, f.now); need != (receipt.Cost{}) {
				e.Reserved = governance.Sum(e.Reserved, need)
				f.ledger.Change(e)
			}
		}
		if e.Reserved == (receipt.Cost{}) {
			continue
		}
		a, _ := f.accounts(e)
		for _, account := range []*governance.Account{a.Cap, a.Cell, a.World} {
			if account != nil {
				held[account] = governance.Sum(held[account], e.Reserved)
			}
		}
	}
	if f.budgets.World != nil {
		f.budgets.World.Reckon(held[f.budgets.World])
	}
	for _, account := range f.budgets.Caps { // order cannot show: each by itself
		account.Reckon(held[account])
	}
	for _, c := range f.cells.bring(func(c *cell) bool { return c.asked().account != nil }) { // each by itself
		account := c.asks.account
		was := *account
		if account.Reckon(held[account]); *account != was {
			f.touch(c)
		}
	}
}

// A capability rests where an answer of the outside says that an attempt under it used more
// than it can have used: the server cannot count, or lies, or max_cost is too low. What is not
// begun under it waits for a person, who is told so. The rest ends when a person approves an
// intent that awaits approval since.

// rest has the capability of an intent rest since a receipt, by a record.
func (g *gate) rest(e *receipt.Entry, r *receipt.Receipt, charged receipt.Cost, record journal.Seq) {
	b := journal.Rests{
		Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt,
		Cap: e.Intent.Cap, Said: r.Cost, Charged: charged,
	}
	id := g.writeRecord(journal.KindRests, record, &b)
	if g.rests == nil {
		g.rests = make(map[string]journal.Seq)
	}
	g.rests[e.Intent.Cap] = id
}

// restsFor returns why what is asked for under a capability, or awaiting approval since a record, waits
// for a person though the rules let it through; empty: it does not. 0 stands for no record.
func (g *gate) restsFor(capability string, asked uint64) string {
	since, rests := g.rests[capability]
	if !rests || asked > uint64(since) {
		return ""
	}
	return fmt.Sprintf("capability %s rests since #%d: a receipt says that an attempt used more than max_cost", capability, since)
}
