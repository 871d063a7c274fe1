package world

import (
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// budgets are the accounts of the budgets that are not a cell's. An account is
// opened when something is first drawn from it.
type budgets struct {
	Caps  map[string]*governance.Account `cbor:"caps,omitempty"`
	World *governance.Account            `cbor:"world,omitempty"`
}

// accounts returns the accounts that an intent draws on; false: no budget bounds
// it. Those of operators' cells are nobody's: an operator has no cell.
func (k *kernel) accounts(e *receipt.Entry) (governance.Accounts, bool) {
	asker, _ := reducer.ParseCell(e.Intent.Cell) // names in the ledger have been parsed before
	var a governance.Accounts
	ofCap, ofCell, ofWorld := k.rules.gate.Budgeted(e.Intent.Cap, asker.Reducer)
	if ofCap {
		if k.budgets.Caps == nil {
			k.budgets.Caps = make(map[string]*governance.Account)
		}
		if k.budgets.Caps[e.Intent.Cap] == nil {
			k.budgets.Caps[e.Intent.Cap] = new(governance.Account)
		}
		a.Cap = k.budgets.Caps[e.Intent.Cap]
	}
	if c := k.cells.get(asker); ofCell && c != nil {
		of := c.toAsk()
		if of.account == nil {
			of.account = new(governance.Account)
		}
		k.touch(c)
		a.Cell = of.account
	}
	if ofWorld {
		if k.budgets.World == nil {
			k.budgets.World = new(governance.Account)
		}
		a.World = k.budgets.World
	}
	if !ofCap && !ofCell && !ofWorld {
		return a, false
	}
	k.rules.gate.Renew(&e.Intent, a, k.now)
	return a, true
}

// drawn returns the accounts that an intent draws on, for looking at: nil where nothing
// has been drawn yet.
func (k *kernel) drawn(e *receipt.Entry) governance.Accounts {
	a := governance.Accounts{Cap: k.budgets.Caps[e.Intent.Cap], World: k.budgets.World}
	if asker, err := reducer.ParseCell(e.Intent.Cell); err == nil {
		if cell := k.cells.get(asker); cell != nil {
			a.Cell = cell.asked().account
		}
	}
	return a
}

// setAside sets need aside for the attempt of an intent that starts.
func (k *kernel) setAside(e *receipt.Entry, need receipt.Cost) {
	if a, ok := k.accounts(e); ok {
		a.Reserve(need)
		e.Reserved = governance.Sum(e.Reserved, need)
	}
}

// settle ends what is set aside for an intent, as end does it with its accounts.
func (k *kernel) settle(e *receipt.Entry, end func(governance.Accounts)) {
	if a, ok := k.accounts(e); ok && e.Reserved != (receipt.Cost{}) {
		end(a)
	}
	e.Reserved = receipt.Cost{}
}

// charge puts what an attempt is charged in the place of what was set aside for it. Where its
// receipt, by a record, says more than it can have used, its capability rests from there on.
func (k *kernel) charge(e *receipt.Entry, r *receipt.Receipt, record journal.Seq) {
	has := e.Reserved
	if e.Accepted() != "" { // nothing was set aside for it
		has = receipt.Cost{}
	}
	charged, beyond := k.rules.gate.Charged(&e.Intent, has, r)
	if beyond {
		k.rest(e, r, charged, record)
	}
	if a, ok := k.accounts(e); ok && (has != (receipt.Cost{}) || e.Accepted() != "") {
		k.rules.gate.Settle(&e.Intent, a, has, charged, r)
	}
	if e.Accepted() == "" {
		e.Reserved = receipt.Cost{}
	}
}

// release gives back what is set aside for an intent of which is known that it
// did not happen.
func (k *kernel) release(e *receipt.Entry) {
	if a, ok := k.accounts(e); ok {
		a.Release(e.Reserved)
	}
	e.Reserved = receipt.Cost{}
}

// asReleased has the budgets be as after release, until what it returns is called: for who
// asks what would be decided then.
func (k *kernel) asReleased(e *receipt.Entry) (restore func()) {
	a := k.drawn(e)
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
func (k *kernel) keep(e *receipt.Entry) {
	k.settle(e, func(a governance.Accounts) { a.Keep(e.Reserved) })
}

// mayGoOn reports whether the budgets leave room for the next attempt of an intent whose
// last one is over.
func (k *kernel) mayGoOn(e *receipt.Entry) bool {
	return k.rules.gate.Gone(&e.Intent, k.drawn(e), k.now) == nil
}

// mayRepeat reports whether the budgets have a call for another attempt of an intent
// that is in doubt.
func (k *kernel) mayRepeat(e *receipt.Entry) bool {
	return k.rules.gate.CanRepeat(&e.Intent, k.drawn(e), e.Reserved, k.now)
}

// disproved gives back what was set aside for an attempt in doubt that did not happen,
// but for its call, which may have left; and reports whether the budgets have room for
// another.
func (k *kernel) disproved(e *receipt.Entry) bool {
	call := receipt.Cost{Calls: e.Reserved.Calls}
	k.settle(e, func(a governance.Accounts) {
		a.Keep(call)
		a.Release(governance.Rest(e.Reserved, call))
	})
	return k.mayGoOn(e)
}

// reckon holds all accounts against what is set aside for intents that have not ended:
// other rules are in force from now on, and may draw on them otherwise.
func (k *kernel) reckon() {
	held := make(map[*governance.Account]receipt.Cost)
	for _, e := range k.ledger.Unfinished() {
		if e.Reserved == (receipt.Cost{}) {
			continue
		}
		a, _ := k.accounts(e)
		for _, account := range []*governance.Account{a.Cap, a.Cell, a.World} {
			if account != nil {
				held[account] = governance.Sum(held[account], e.Reserved)
			}
		}
	}
	if k.budgets.World != nil {
		k.budgets.World.Reckon(held[k.budgets.World])
	}
	for _, account := range k.budgets.Caps { // order cannot show: each by itself
		account.Reckon(held[account])
	}
	for _, c := range k.cells.bring(func(c *cell) bool { return c.asked().account != nil }) { // each by itself
		account := c.asks.account
		was := *account
		if account.Reckon(held[account]); *account != was {
			k.touch(c)
		}
	}
}
