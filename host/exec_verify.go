package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// execVerifier asks a program, which it runs like the exec adapter does. The
// program gets
//
//	{"external_key": TEXT, "intent": {"key": TEXT, "kind": TEXT, "params": ANY}, "receipt": RECEIPT}
//
// with receipt null where an attempt is in doubt and params null where a receipt
// is to be confirmed, and answers with exit status 0 and
//
//	{"happened": true | false | null, "final"?: BOOL, "payload"?: ANY, "reason"?: TEXT}
//
// final, with false: it never will happen, whatever is still on its way. Any other
// answer is none.
type execVerifier struct {
	program program
	perTry  bool // every attempt has an external key of its own
}

func newExecVerifier(s Setup) (Verifier, error) {
	t, err := governance.ParseExec(s.Config, nil)
	if err != nil {
		return nil, err
	}
	if t.Fixed < len(t.Args) || t.Text {
		return nil, errors.New("config: a verifier's arguments are not of params, and it answers in JSON")
	}
	return &execVerifier{program{t, s}, s.Effect.ExternalKey == manifest.ExternalPerAttempt}, nil
}

func (v *execVerifier) Verify(ctx context.Context, call Call) (receipt.Found, error) {
	p := call.Permit
	return v.askProgram(ctx, attempt{p.Key, p.Attempt}, question{
		Intent:   questioned{p.Key, p.Kind, canon.AppendRaw(nil, p.Params)},
		External: call.External,
	})
}

func (v *execVerifier) Confirm(ctx context.Context, _ Call, r *receipt.Receipt) (receipt.Found, error) {
	external := r.Key.External(r.World)
	if v.perTry {
		external += ":" + strconv.FormatUint(r.Attempt, 10)
	}
	return v.askProgram(ctx, attempt{r.Key, r.Attempt}, question{
		Intent:   questioned{r.Key, r.Kind, canon.AppendNull(nil)},
		External: external, Receipt: r,
	})
}

type question struct {
	Intent   questioned       `json:"intent"`
	External string           `json:"external_key"`
	Receipt  *receipt.Receipt `json:"receipt"`
}

type questioned struct {
	Key    receipt.Key  `json:"key"`
	Kind   string       `json:"kind"`
	Params receipt.Data `json:"params"`
}

func (v *execVerifier) askProgram(ctx context.Context, of attempt, q question) (receipt.Found, error) {
	input, err := json.Marshal(q)
	if err != nil {
		return receipt.Found{}, err
	}
	done, err := v.program.run(ctx, input, q.External, of)
	switch {
	case ctx.Err() != nil:
		return receipt.Found{}, ctx.Err()
	case Short(err):
		return receipt.Found{}, err
	case err != nil:
		return v.unknown(err.Error()), nil
	case done.exit != 0:
		return v.unknown(fmt.Sprintf("it ended with status %d: %s", done.exit, done.stderr.String())), nil
	}
	data, err := done.payload(false)
	if err != nil {
		return v.unknown(err.Error()), nil
	}
	var answer struct {
		Happened *bool        `cbor:"happened"`
		Final    bool         `cbor:"final"`
		Payload  receipt.Data `cbor:"payload"`
		Reason   string       `cbor:"reason"`
	}
	if err := canon.UnmarshalTrusted(data, &answer); err != nil {
		return v.unknown(err.Error()), nil
	}
	if answer.Reason == "" {
		answer.Reason = "it says so"
	}
	found := v.unknown(answer.Reason)
	if answer.Happened != nil {
		found.Verdict, found.Final = receipt.NotHappened, answer.Final
		if *answer.Happened {
			found = receipt.Found{Verdict: receipt.Happened, Payload: answer.Payload, Reason: found.Reason}
		}
	}
	return found, nil
}

func (v *execVerifier) unknown(reason string) receipt.Found {
	return receipt.Found{Verdict: receipt.Unknown, Reason: v.program.Program + ": " + reason}
}
