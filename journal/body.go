package journal

import (
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Data holds a canonical CBOR item and prints as JSON.
type Data = manifest.Data

// Body is the payload of a record: a pointer to the struct of its kind. On disk
// it is a canonical CBOR array of the fields in their order, the first being
// the version of the struct.
type Body interface{ version() uint64 }

// Version is what every payload begins with.
type Version struct {
	_ struct{} `cbor:",toarray"`
	V uint64   `json:"v"`
}

// V returns the version n of a struct.
func V(n uint64) Version { return Version{V: n} }

func (x *Version) version() uint64 { return x.V }

// BodyVersion is the version of every struct. Another is refused by name.
const BodyVersion = 1

// Created is the payload of world.created, record 1.
type Created struct {
	Version
	World    string  `json:"world"` // the id, which keys and receipts are bound to
	Name     string  `json:"name"`  // the manifest's
	Seed     uint64  `json:"seed"`
	Manifest Hash    `json:"manifest"`
	Kernel   string  `json:"kernel"` // the version of the kernel, and engines, that replay needs
	Engines  Engines `json:"engines"`
}

// Advanced is the payload of clock.advanced: a tick begins.
type Advanced struct {
	Version
	To    manifest.Tick `json:"to"`
	Still bool          `json:"still,omitempty"` // nothing is permitted until the next one: nobody may be there to perform it, or the world is held
}

// Submitted is the payload of event.submitted. Under, Of and Nth are one item of it: an array
// of the three, or null.
type Submitted struct {
	Version
	Name   string        `json:"name"`
	Due    manifest.Tick `json:"due"`    // 0: at once
	Direct bool          `json:"direct"` // the caller named the cell; else the routes did
	To     []string      `json:"to"`     // cells

	Under string `json:"key,omitempty"` // a key: however often it is submitted under it, it is once; "": under none
	Of    Hash   `json:"of,omitzero"`   // of all that is submitted together under the key
	Nth   uint64 `json:"nth,omitempty"` // of those, from 1

	Data Data `json:"data"`
}

// Finished is the payload of invocation.finished, the ledger's commit.
type Finished struct {
	Version
	Receipt Data `json:"receipt"`
}

// Resumed is the payload of cell.resumed: a person lets a halted cell go on.
type Resumed struct {
	Version
	Cell string `json:"cell"`
	Skip bool   `json:"skip"` // without the event that failed

	Actor  string `json:"actor"`  // "": it is not known who decided
	Reason string `json:"reason"` // "": none was given
}

// Stepped is the payload of cell.stepped, caused by the event it handled.
type Stepped struct {
	Version
	Cell    string          `json:"cell"`
	N       uint64          `json:"n"` // number of the step in the cell's history
	Outcome receipt.Outcome `json:"outcome"`
	State   Hash            `json:"state"` // of the new state; zero where there is none
	Gas     uint64          `json:"gas"`
}

// Failed is the payload of cell.failed: the step left no trace but this.
type Failed struct {
	Version
	Cell   string `json:"cell"`
	N      uint64 `json:"n"` // the number that the step had or would have had
	Halted bool   `json:"halted"`
	Error  string `json:"error"`
}

// Deleted is the payload of cell.deleted: the step returned no state.
type Deleted struct {
	Version
	Cell string `json:"cell"`
	N    uint64 `json:"n"`
}

// Emitted is the payload of event.emitted, caused by the step that sent it.
type Emitted struct {
	Version
	Name string   `json:"name"`
	To   []string `json:"to"`
	Data Data     `json:"data"`
}

// Dropped is the payload of event.dropped, caused by the event that reached
// nobody.
type Dropped struct {
	Version
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// IntentEmitted is the payload of intent.emitted: an effect that the gate
// allowed.
type IntentEmitted struct {
	Version
	Key        receipt.Key    `json:"key"`
	Step       receipt.StepID `json:"step_id"`
	Cell       string         `json:"cell"`
	Kind       string         `json:"kind"`
	Tag        string         `json:"tag"`
	Cap        string         `json:"cap"`
	Occurrence uint64         `json:"occurrence"`
	Decision   string         `json:"decision"`
	Rules      []string       `json:"rules"`
	Params     Data           `json:"params"`
}

// IntentDenied is the payload of intent.denied: an effect that the gate did not
// allow, and why.
type IntentDenied struct {
	Version
	Key        receipt.Key    `json:"key"`
	Step       receipt.StepID `json:"step_id"`
	Cell       string         `json:"cell"`
	Kind       string         `json:"kind"`
	Tag        string         `json:"tag"`
	Cap        string         `json:"cap"`
	Occurrence uint64         `json:"occurrence"`
	Code       string         `json:"code"`
	Reason     string         `json:"reason"`
	Rules      []string       `json:"rules"`
	Params     Data           `json:"params"`
}

// Started is the payload of invocation.started: a permit.
type Started struct {
	Version
	Key     receipt.Key   `json:"key"`
	Attempt uint64        `json:"attempt"`
	Owner   uint64        `json:"owner"` // the slot
	Nonce   receipt.Nonce `json:"nonce"`
}

// TimerSet is the payload of timer.set.
type TimerSet struct {
	Version
	Cell     string        `json:"cell"`
	Name     string        `json:"name"`
	Deadline manifest.Tick `json:"deadline"`
	Tag      string        `json:"tag,omitempty"` // of a cell's timers that wait no two have the same
	Data     Data          `json:"data"`
}

// TimerFired is the payload of timer.fired, caused by the timer.set.
type TimerFired struct {
	Version
	Cell string `json:"cell"`
	Name string `json:"name"`
}

// TagCancelled is the payload of cell.cancelled, caused by the step in which a cell
// cancelled a tag, or set its timer anew. What intents it cancelled, they have an
// IntentCancelled each.
type TagCancelled struct {
	Version
	Cell     string `json:"cell"`
	Tag      string `json:"tag"`
	Timer    Seq    `json:"timer"`    // the timer.set of the timer that will not fire; 0: none
	Receipts []Seq  `json:"receipts"` // what brought the receipts that had come and are handled as cancelled
}

// Rests is the payload of capability.rests, caused by the receipt that says that an attempt
// used more than it can have used.
type Rests struct {
	Version
	Key     receipt.Key  `json:"key"`
	Cell    string       `json:"cell"`
	Attempt uint64       `json:"attempt"`
	Cap     string       `json:"cap"`
	Said    receipt.Cost `json:"said"`    // what the receipt says
	Charged receipt.Cost `json:"charged"` // what the budgets are charged, in the units that they bound
}
