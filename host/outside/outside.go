// Package outside performs effects through the programs beside a world that have asked for them, such as
// a call of a tool of a server that the client of an agent has started. It is a part of worldctl, and not
// an API.
//
// Who asks hands in a [Caller], under the tag of the intent that the session's cell asks for (package
// reducer/recorder). A permit for an intent that nobody has handed in performs nothing: who could
// perform it has gone. What is performed is what the permit says, whatever waits.
package outside

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/callers"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// Callers wait for their permits.
type Callers = callers.Callers[Caller]

// Caller can perform a call.
type Caller struct {
	// Perform makes one attempt, under the rules of host.Adapter. Key is the idempotency key.
	Perform func(ctx context.Context, call *recorder.ToolRequest, key string) (host.Result, error)
}

// New returns a host.Factory of adapters for callers; nil: no program runs beside the world.
func New(callers *Callers) host.Factory {
	return func(s host.Setup) (host.Adapter, error) {
		if _, err := governance.NeedsOf(&s.Effect); err != nil {
			return nil, err
		}
		return &adapter{callers}, nil
	}
}

type adapter struct{ callers *Callers }

// Waits implements host.Waiting.
func (a *adapter) Waits() bool { return true }

// errNoCaller says that nobody can make the call.
var errNoCaller = errors.New("the agent that asked is gone: it asks again when it is started again")

// Perform implements host.Adapter.
func (a *adapter) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	caller := a.callers.Await(ctx, callers.ID{Cell: call.Permit.Cell, Tag: call.Permit.Tag})
	if caller == nil {
		return host.Refused(errNoCaller), nil
	}
	judged := new(recorder.ToolRequest)
	if err := call.Decode(judged); err != nil {
		return host.Refused(err), nil
	}
	return caller.Perform(ctx, judged, call.External)
}
