package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// trial judges recorded intents under another manifest. The budgets follow what
// the journal says of the effects that both let go, as the kernel's do.
type trial struct {
	gate     *governance.Gate
	manifest *manifest.Manifest
	world    string // its id
	caps     map[string]*governance.Account
	cells    map[string]*governance.Account
	whole    *governance.Account
	seen     map[receipt.Key]*tried
}

// tried is an intent on trial.
type tried struct {
	in       receipt.Intent // Cap is the capability that allows it
	step     uint64
	verdict  governance.Verdict
	reserved receipt.Cost // of budgets, for the attempt under way; its call is spent
}

func newTrial(m *manifest.Manifest, world string) (*trial, error) {
	gate, err := governance.NewGate(m)
	if err != nil {
		return nil, err
	}
	return &trial{
		gate: gate, manifest: m, world: world, whole: new(governance.Account), seen: make(map[receipt.Key]*tried),
		caps: make(map[string]*governance.Account), cells: make(map[string]*governance.Account),
	}, nil
}

// trialKinds returns the kinds of records that a trial takes.
func trialKinds() []world.Kind {
	return []world.Kind{
		world.KindIntent, world.KindParked, world.KindDenied, world.KindFinished, world.KindWaiting, world.KindInDoubt,
		world.KindResolved, world.KindEnded,
	}
}

// add takes the next record. It returns what would have been decided where the
// record is the first about an intent, else nil.
func (t *trial) add(e *entry) (*judged, error) {
	key, _ := intentOf(e.body)
	x := t.seen[key]
	if x != nil {
		return nil, t.follow(x, e)
	}
	var in receipt.Intent
	var was ruling
	switch b := e.body.(type) {
	case *world.IntentEmitted:
		in = receipt.Intent{Key: b.Key, Step: b.Step, Cell: b.Cell, Kind: b.Kind, Params: b.Params, Tag: b.Tag, Cap: b.Cap}
		was = ruling{Decision: b.Decision, Cap: b.Cap, Rules: b.Rules}
	case *world.IntentParked:
		in = receipt.Intent{Key: b.Key, Step: b.Step, Cell: b.Cell, Kind: b.Kind, Params: b.Params, Tag: b.Tag, Cap: b.Cap}
		was = ruling{Decision: manifest.DecideRequireApproval, Cap: b.Cap, Rules: b.Rules}
	case *world.IntentDenied:
		in = receipt.Intent{Key: b.Key, Step: b.Step, Cell: b.Cell, Kind: b.Kind, Params: b.Params, Tag: b.Tag, Cap: b.Cap}
		was = ruling{Decision: manifest.DecideDeny, Code: b.Code, Cap: b.Cap, Rules: b.Rules, Reason: b.Reason}
	default:
		return nil, fmt.Errorf("%s, and nothing before it tells of its intent", e.Kind)
	}
	x = &tried{in: in}
	x.in.Cap = t.askedFor(&in, was.Code)
	var err error
	if x.step, err = stepOf(in.Step, in.Cell); err != nil {
		return nil, err
	}
	d, err := t.judge(x, e.Time, false)
	if err != nil {
		return nil, err
	}
	t.seen[key] = x
	now := ruling{Decision: d.Verdict.String(), Code: string(d.Code), Cap: d.Cap, Rules: d.Rules, Reason: d.Reason}
	return &judged{
		Key: key, Cell: in.Cell, Kind: in.Kind, Record: e.ID, Time: e.Time, Before: was.filled(), After: now.filled(),
		Changed: was.Decision != now.Decision,
	}, nil
}

// filled makes no rules print as an empty list.
func (v ruling) filled() ruling {
	if v.Rules == nil {
		v.Rules = []string{}
	}
	return v
}

// askedFor returns the capability to ask for. The journal does not tell which
// one was, but where it was not held.
func (t *trial) askedFor(in *receipt.Intent, code string) string {
	asker, _, _ := strings.Cut(in.Cell, "/")
	switch governance.Code(code) {
	case governance.CodeUnknownCap:
		return in.Cap
	case "", governance.CodePolicyDenied, governance.CodePolicyError, governance.CodeNoPolicy,
		governance.CodeNoMaxCost, governance.CodeBudgetExceeded:
		if asker == reducer.Operator || slices.Contains(t.manifest.Reducers[asker].Grants, in.Cap) {
			return in.Cap
		}
		return ""
	default: // the capability failed, and another may fit
		if asker == reducer.Operator {
			return in.Cap
		}
		return ""
	}
}

// stepOf returns the number of the step that asked: step ids are CELL@N and more.
func stepOf(id receipt.StepID, cell string) (uint64, error) {
	if strings.HasPrefix(cell, reducer.Operator+"/") {
		return 0, nil // operators take no steps
	}
	text, ok := strings.CutPrefix(string(id), cell+"@")
	n, _, dot := strings.Cut(text, ".")
	if !ok || !dot {
		return 0, fmt.Errorf("%q is not a step of %s", id, cell)
	}
	return strconv.ParseUint(n, 10, 64)
}

// judge puts an intent before the gate, and draws on the budgets if that lets it
// go.
func (t *trial) judge(x *tried, now manifest.Tick, approved bool) (governance.Decision, error) {
	asker, err := reducer.ParseCell(x.in.Cell)
	if err != nil {
		return governance.Decision{}, err
	}
	d := t.gate.Decide(&governance.Request{
		World: t.world, Cell: asker, Step: x.step, Time: now, Kind: x.in.Kind, Params: x.in.Params, Tag: x.in.Tag, Cap: x.in.Cap,
		Approved: approved, Caps: t.caps, Accounts: governance.Accounts{Cell: t.cells[x.in.Cell], World: t.whole},
	})
	x.verdict = d.Verdict
	if d.Verdict != governance.Deny {
		x.in.Cap = d.Cap
	}
	if d.Verdict == governance.Allow {
		t.draw(x, d.Reserve)
	}
	return d, nil
}

// draw sets aside what the next attempt may cost, and spends its call.
func (t *trial) draw(x *tried, c receipt.Cost) {
	if c == (receipt.Cost{}) {
		return
	}
	a := t.accounts(x)
	a.Reserve(c)
	a.Start(c)
	x.reserved = c
	x.reserved.Calls = 0
}

// accounts returns those that an intent draws on.
func (t *trial) accounts(x *tried) governance.Accounts {
	asker, _, _ := strings.Cut(x.in.Cell, "/")
	ofCap, ofCell, ofWorld := t.gate.Budgeted(x.in.Cap, asker)
	var a governance.Accounts
	if ofCap {
		a.Cap = accountIn(t.caps, x.in.Cap)
	}
	if ofCell {
		a.Cell = accountIn(t.cells, x.in.Cell)
	}
	if ofWorld {
		a.World = t.whole
	}
	return a
}

func accountIn(of map[string]*governance.Account, name string) *governance.Account {
	if of[name] == nil {
		of[name] = new(governance.Account)
	}
	return of[name]
}

// follow takes a further record about an intent.
func (t *trial) follow(x *tried, e *entry) error {
	if b, ok := e.body.(*world.IntentEmitted); ok && b.Decision == "approved" && x.verdict == governance.RequireApproval {
		_, err := t.judge(x, e.Time, true)
		return err
	}
	if x.verdict != governance.Allow {
		return nil
	}
	switch b := e.body.(type) {
	case *world.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return err
		}
		t.settle(x, r)
	case *world.IntentWaiting:
		if b.Outcome == receipt.OutcomeRetryableFailure {
			c, _ := t.gate.Again(&x.in, t.accounts(x))
			t.draw(x, c)
		}
	case *world.InDoubt:
		if b.Action == manifest.InDoubtRetry {
			t.drawCall(x)
		}
	case *world.Resolved:
		if b.How == world.NotExecuted || b.How == world.RetryAnyway {
			t.drawCall(x)
		}
	case *world.IntentEnded:
		if strings.HasPrefix(explained(b.Payload), world.CodeNotExecuted+":") { // no attempt follows its resolution after all
			a := t.accounts(x)
			a.Return()
			a.Release(x.reserved)
			x.reserved = receipt.Cost{}
		}
	}
	return nil
}

// settle puts what an attempt used in the place of what was set aside for it.
func (t *trial) settle(x *tried, r *receipt.Receipt) {
	a := t.accounts(x)
	if r.Unsent {
		a.Return()
		a.Release(x.reserved)
	} else {
		a.Settle(x.reserved, r.Cost)
	}
	x.reserved = receipt.Cost{}
}

// drawCall spends a call on another attempt; what is set aside for the last one
// besides stays for it.
func (t *trial) drawCall(x *tried) {
	if a := t.accounts(x); t.gate.HasCall(&x.in, a) {
		a.Reserve(receipt.Cost{Calls: 1})
		a.Start(receipt.Cost{Calls: 1})
	}
}
