package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// result is what came of a call that has a response, or failed with err.
// asked is what the server asked during it, or nil.
func (a *adapter) result(ctx context.Context, x *exchange, tool *Tool, response *message, asked *receipt.InputRequest, err error) (host.Result, error) {
	repeatable := a.setup.Effect.Idempotent || a.setup.Effect.Class == "" && tool != nil && tool.Idempotent
	status := int(x.status.Load())
	var began *task
	if response != nil && response.fault == nil && x.asTask {
		began = begun(response.result)
	}
	switch {
	case response != nil && asked != nil: // it was cancelled, and what came of the call follows from that
		return needsInput(receipt.Question{Requests: map[string]receipt.InputRequest{methodElicit: *asked}}), nil
	case began != nil:
		return began.accepted(time.Now().Add(began.keeps()))
	case response != nil && response.fault == nil:
		return answered(response.result), nil
	case response != nil:
		return permanent(false, response.fault.name(), response.fault.Error()), nil
	case !x.sent.Load():
		return unsent(ctx, err), nil
	case errors.Is(err, errSessionMissing): // it was refused for that before anything else
		return retryable(receipt.StatusError, "session_missing", err), nil
	case status == http.StatusTooManyRequests || status >= 500:
		r := permanent(false, fmt.Sprintf("http_%d", status), err.Error())
		if repeatable {
			r = retryable(receipt.StatusError, fmt.Sprintf("http_%d", status), err)
		}
		r.Exact = true // it was refused
		return r, nil
	case status >= 300:
		return permanent(false, fmt.Sprintf("http_%d", status), err.Error()), nil
	case x.tooLarge.Load(): // it did its work, and nobody can tell what came of it
		r := permanent(false, "too_large", errTooLarge.Error())
		r.Class = receipt.OutcomeCompensatable
		return r, nil
	case !repeatable:
		return host.Result{}, fmt.Errorf("mcp: %w", err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return retryable(receipt.StatusTimeout, "timeout", err), nil
	default:
		return retryable(receipt.StatusTimeout, "no_answer", err), nil
	}
}

// answered is the result of a tool's result.
func answered(result json.RawMessage) host.Result {
	data, err := canon.FromJSON(result)
	if err != nil {
		return permanent(false, "not_a_result", err.Error())
	}
	if r, asks := inputRequired(data); asks {
		return r
	}
	if canon.NewReader(data).Kind() != canon.KindMap || string(item(data, "task")) != canon.Null {
		return permanent(false, "not_a_result", "the answer is no object, or a task that nobody asked for")
	}
	content, err := canon.Lookup(data, "content")
	if err != nil { // nothing, or nothing but structuredContent: clients of other languages take that, too
		content = canon.AppendArray(nil, 0)
	}
	r := host.Result{Status: receipt.StatusOK}
	failed := says(item(data, "isError"))
	if failed {
		r.Status = receipt.StatusError
	}
	r.Payload = encode(map[string]canon.Raw{
		"content": content, "structured": item(data, "structuredContent"), "is_error": canon.AppendBool(nil, failed),
	})
	return r
}

// says reports whether a value means yes: servers in languages without types write true in many ways.
func says(raw canon.Raw) bool {
	text, err := canon.ToJSON(raw)
	return err == nil && !slices.Contains([]string{"null", "false", "0", "0.0", "[]", "{}", `""`, `"false"`, `"0"`, `"no"`}, strings.ToLower(string(text)))
}

// unsent is the result of a call that did not leave.
func unsent(ctx context.Context, err error) host.Result {
	if secret := (*host.SecretError)(nil); errors.As(err, &secret) {
		return host.Refused(err)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return permanent(true, "not_started", err.Error())
	}
	r := retryable(receipt.StatusError, "not_sent", err)
	r.Short = host.Short(err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r = retryable(receipt.StatusTimeout, "timeout", err)
	}
	r.Unsent = true
	return r
}

func retryable(status receipt.Status, code string, err error) host.Result {
	return host.Result{Status: status, Class: receipt.OutcomeRetryableFailure, Payload: fault(code, err.Error())}
}

func permanent(unsent bool, code, reason string) host.Result {
	return host.Result{Status: receipt.StatusError, Unsent: unsent, Payload: fault(code, reason)}
}

func fault(code, reason string) canon.Raw {
	return encode(map[string]canon.Raw{
		"code": canon.AppendText(nil, code), "error": canon.AppendText(nil, strings.ToValidUTF8(reason, "\uFFFD")),
	})
}

// encode encodes items that are canonical, which cannot fail.
func encode(fields map[string]canon.Raw) canon.Raw {
	raw, err := canon.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return raw
}

// item returns a field, or null.
func item(data canon.Raw, name string) canon.Raw {
	raw, err := canon.Lookup(data, name)
	if err != nil {
		return canon.Raw(canon.Null)
	}
	return raw
}
