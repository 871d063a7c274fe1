package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// exitTempfail is EX_TEMPFAIL of sysexits.h: nothing was done, try again.
const exitTempfail = 75

// execAdapter runs one program for each effect, without a shell: params are
// JSON on its standard input, all there before it starts, and arguments where
// config says so; its standard output is the payload, one JSON value or, with
// output text, a text.
//
//	exit 0, such a payload   ok
//	exit 75 (EX_TEMPFAIL)    retryable_failure
//	exit in compensate_on    compensatable_failure
//	any other exit           permanent_failure
//	killed, by whomever      nobody can tell, unless the effect is idempotent
//
// Its environment is the config's env, with secrets resolved, and PATH, LANG,
// WORLDKERNEL_IDEMPOTENCY_KEY and WORLDKERNEL_ATTEMPT; its working directory is
// the world's. It runs in a process group of its own, which ends with it.
type execAdapter struct {
	program program
	setup   Setup
}

// newExec is the factory of exec adapters; see governance.ParseExec for their
// config.
func newExec(s Setup) (Adapter, error) {
	t, err := governance.ParseExec(s.Config, nil)
	if err != nil {
		return nil, err
	}
	return &execAdapter{program{t, s}, s}, nil
}

func (a *execAdapter) Perform(ctx context.Context, call Call) (Result, error) {
	input, err := canon.ToJSON(canon.AppendRaw(nil, call.Permit.Params))
	if err != nil {
		return Result{}, err
	}
	target, err := governance.ParseExec(a.setup.Config, call.Permit.Params)
	if err != nil {
		return Refused(err), nil
	}
	p := program{target, a.setup}
	done, err := p.run(ctx, input, call.External, attempt{call.Permit.Key, call.Permit.Attempt})
	if err != nil {
		return unsentFault(err), nil
	}
	result, err := a.classify(done)
	result.Cost.Bytes = uint64(len(input)) + done.written
	return result, err
}

// classify says what the end of a program means.
func (a *execAdapter) classify(done *finished) (Result, error) {
	payload, bad := done.payload(a.program.Text)
	switch {
	case done.exit == 0 && bad == nil:
		return Result{Status: receipt.StatusOK, Payload: payload}, nil
	case done.exit == 0 && !done.killed: // it did happen, whatever it wrote
		if !done.flooded() {
			return a.failure(done, a.unreadable(), bad.Error(), nil)
		}
		result, err := a.failure(done, string(governance.CodeTooLarge), bad.Error(), nil)
		result.Class = receipt.OutcomeCompensatable
		return result, err
	case done.killed || done.exit < 0:
		return a.cutShort(done)
	}
	result, err := a.failure(done, "exit", fmt.Sprintf("%s exited with status %d", a.program.Program, done.exit), payload)
	switch {
	case slices.Contains(a.program.CompensateOn, done.exit):
		result.Class = receipt.OutcomeCompensatable
	case done.exit == exitTempfail:
		result.Class = receipt.OutcomeRetryableFailure
	}
	return result, err
}

// unreadable is the code of output that is not what config says.
func (a *execAdapter) unreadable() string {
	if a.program.Text {
		return "not_text"
	}
	return "not_json"
}

// cutShort is for a program that did not end by itself.
func (a *execAdapter) cutShort(done *finished) (Result, error) {
	text := fmt.Sprintf("%s was ended by signal %d (%s)", a.program.Program, int(done.signal), done.signal)
	status, code := receipt.StatusError, "killed"
	if done.killed {
		text = a.program.Program + " had not ended in time and was killed"
		status, code = receipt.StatusTimeout, "timeout"
	}
	if !a.setup.Effect.Idempotent {
		text += ", and nobody can tell what it had done"
		if wrote := done.stderr.String(); wrote != "" {
			text += "; it wrote: " + wrote
		}
		return Result{}, errors.New(text)
	}
	result, err := a.failure(done, code, text, nil)
	result.Status, result.Class = status, receipt.OutcomeRetryableFailure
	return result, err
}

// failure is the result of a program that failed; output is what it wrote, if
// that is JSON.
func (a *execAdapter) failure(done *finished, code, text string, output receipt.Data) (Result, error) {
	fields := map[string]any{"code": code, "error": text, "stderr": done.stderr.String()}
	if done.exit >= 0 {
		fields["exit"] = done.exit
	}
	if output != nil {
		fields["stdout"] = output
	}
	payload, err := canon.Marshal(fields)
	return Result{Status: receipt.StatusError, Payload: payload}, err
}

// finished is what is left of a program that has ended.
type finished struct {
	exit    int            // below 0: a signal ended it
	signal  syscall.Signal // where exit is below 0
	killed  bool           // by us, because its time was over
	limit   uint64         // of output
	output  []byte         // its first bytes, limit of them at most
	written uint64         // bytes of output, all that there were
	stderr  *Tail
}

func (f *finished) flooded() bool { return f.written > f.limit }

// payload returns what the program wrote to its standard output: a text, or one
// JSON value.
func (f *finished) payload(text bool) (receipt.Data, error) {
	if f.flooded() {
		return nil, fmt.Errorf("it wrote more than %d bytes to its standard output; config.max_bytes allows no more", f.limit)
	}
	if text {
		if !utf8.Valid(f.output) {
			return nil, errors.New("its standard output is not UTF-8")
		}
		return canon.AppendText(nil, string(f.output)), nil
	}
	payload, err := canon.FromJSON(f.output)
	if err != nil {
		return nil, fmt.Errorf("its standard output is not one JSON value: %w", err)
	}
	return payload, nil
}

// Write takes standard output. What is over the limit is counted and dropped:
// a program that is not disturbed comes to an end that can be told.
func (f *finished) Write(p []byte) (int, error) {
	f.written += uint64(len(p))
	if room := f.limit - uint64(len(f.output)); room > 0 {
		f.output = append(f.output, p[:min(uint64(len(p)), room)]...)
	}
	return len(p), nil
}

// maxTail is how many bytes of standard error are told, the last ones.
const maxTail = 4 << 10
