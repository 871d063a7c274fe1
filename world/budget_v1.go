package world

import (
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/receipt"
)

// Version 1 of how budgets are counted: what an attempt may cost is set aside when it is
// asked for, and its call is spent when it starts.

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

// spendV1 spends the call of the attempt that starts.
func (k *kernel) spendV1(e *receipt.Entry) {
	if e.Reserved == (receipt.Cost{}) {
		return
	}
	if a, ok := k.accounts(e); ok {
		a.Start(e.Reserved)
	}
	e.Reserved.Calls = 0
}

// chargeV1 puts the cost of an attempt in the place of what was reserved for it. Of a unit
// without a cost nobody knows what it used, unless the receipt says that the cost is
// exact: then what was reserved comes back, else it stays so for good.
func (k *kernel) chargeV1(e *receipt.Entry, r *receipt.Receipt, charged receipt.Cost) {
	if r.Unsent {
		k.returnCallV1(e)
	} else if a, ok := k.accounts(e); ok {
		a.Settle(e.Reserved, charged)
		if r.Exact {
			a.Free(e.Reserved, charged)
		}
		e.Reserved = receipt.Cost{}
	}
}

// returnCallV1 gives back what was spent on an attempt, and set aside for it, of
// which nothing has left.
func (k *kernel) returnCallV1(e *receipt.Entry) {
	if a, ok := k.accounts(e); ok {
		a.Return()
		a.Release(e.Reserved)
		e.Reserved = receipt.Cost{}
	}
}

// reserveAgainV1 sets aside what the next attempt may cost, if the budgets have
// that.
func (k *kernel) reserveAgainV1(e *receipt.Entry) bool {
	a, ok := k.accounts(e)
	if !ok {
		return true
	}
	c, ok := k.rules.gate.Again(&e.Intent, a, k.now)
	if ok {
		k.reserve(e, c)
	}
	return ok
}

// hasCallV1 reports whether the budgets have a call for another attempt. What an
// attempt in doubt has reserved besides stays for the next.
func (k *kernel) hasCallV1(e *receipt.Entry) bool {
	a, ok := k.accounts(e)
	return !ok || k.rules.gate.HasCall(&e.Intent, a, k.now)
}

// reserveCallV1 sets a call aside for another attempt, if the budgets have one.
func (k *kernel) reserveCallV1(e *receipt.Entry) bool {
	a, ok := k.accounts(e)
	if !ok {
		return true
	}
	if !k.rules.gate.HasCall(&e.Intent, a, k.now) {
		return false
	}
	a.Reserve(receipt.Cost{Calls: 1})
	e.Reserved.Calls = 1
	return true
}

// letGo gives back what is set aside for intents that wait, where the next rules are the
// first of version 2: who waits holds nothing there. Else two of them whose attempts may
// cost more under those rules would wait for what the other holds, for ever. What an
// attempt before may have cost of which nobody knows stays in the accounts: see reckon.
func (k *kernel) letGo(next *rules) {
	if k.rules.gate.AtStart() || !next.gate.AtStart() {
		return
	}
	for _, e := range k.ledger.Unfinished() {
		if e.Reserved == (receipt.Cost{}) || e.State == receipt.StateInFlight || e.State == receipt.StateInDoubt {
			continue
		}
		back := e.Reserved
		if e.Uncertain {
			back = receipt.Cost{Calls: e.Reserved.Calls}
		}
		k.settle(e, func(a governance.Accounts) { a.Release(back) })
		k.ledger.Change(e)
	}
}
