package world

import (
	"github.com/worldkernel/worldkernel/governance"
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
	if c := k.cells[asker]; ofCell && c != nil {
		if c.account == nil {
			c.account = new(governance.Account)
		}
		k.touch(c)
		a.Cell = c.account
	}
	if ofWorld {
		if k.budgets.World == nil {
			k.budgets.World = new(governance.Account)
		}
		a.World = k.budgets.World
	}
	return a, ofCap || ofCell || ofWorld
}

// reserve sets aside what the gate said when it allowed an intent.
func (k *kernel) reserve(e *receipt.Entry, c receipt.Cost) {
	if c == (receipt.Cost{}) {
		return
	}
	e.Reserved = c
	if a, ok := k.accounts(e); ok {
		a.Reserve(c)
	}
}

// spend spends the call of the attempt that starts.
func (k *kernel) spend(e *receipt.Entry) {
	if e.Reserved == (receipt.Cost{}) {
		return
	}
	if a, ok := k.accounts(e); ok {
		a.Start(e.Reserved)
	}
	e.Reserved.Calls = 0
}

// charge puts the cost of an attempt in the place of what was reserved for it. Of a unit
// without a cost nobody knows what it used, unless the receipt says that the cost is
// exact: then what was reserved comes back, else it stays so for good.
func (k *kernel) charge(e *receipt.Entry, r *receipt.Receipt) {
	if r.Unsent {
		k.returnCall(e)
	} else if a, ok := k.accounts(e); ok {
		a.Settle(e.Reserved, r.Cost)
		if r.Exact {
			a.Free(e.Reserved, r.Cost)
		}
		e.Reserved = receipt.Cost{}
	}
}

// returnCall gives back what was spent on an attempt, and set aside for it, of
// which nothing has left.
func (k *kernel) returnCall(e *receipt.Entry) {
	if a, ok := k.accounts(e); ok {
		a.Return()
		a.Release(e.Reserved)
		e.Reserved = receipt.Cost{}
	}
}

// release gives back what is reserved for an intent of which is known that it
// did not happen.
func (k *kernel) release(e *receipt.Entry) {
	if a, ok := k.accounts(e); ok {
		a.Release(e.Reserved)
	}
	e.Reserved = receipt.Cost{}
}

// releaseCall gives back the call that is set aside for another attempt, and nothing of
// what an attempt before may have cost.
func (k *kernel) releaseCall(e *receipt.Entry) {
	if a, ok := k.accounts(e); ok {
		a.Release(receipt.Cost{Calls: e.Reserved.Calls})
	}
	e.Reserved.Calls = 0
}

// reserveAgain sets aside what the next attempt may cost, if the budgets have
// that.
func (k *kernel) reserveAgain(e *receipt.Entry) bool {
	a, ok := k.accounts(e)
	if !ok {
		return true
	}
	c, ok := k.rules.gate.Again(&e.Intent, a)
	if ok {
		k.reserve(e, c)
	}
	return ok
}

// hasCall reports whether the budgets have a call for another attempt. What an
// attempt in doubt has reserved besides stays for the next.
func (k *kernel) hasCall(e *receipt.Entry) bool {
	a, ok := k.accounts(e)
	return !ok || k.rules.gate.HasCall(&e.Intent, a)
}

// reserveCall sets a call aside for another attempt, if the budgets have one.
func (k *kernel) reserveCall(e *receipt.Entry) bool {
	a, ok := k.accounts(e)
	if !ok {
		return true
	}
	if !k.rules.gate.HasCall(&e.Intent, a) {
		return false
	}
	a.Reserve(receipt.Cost{Calls: 1})
	e.Reserved.Calls = 1
	return true
}
