package llm

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// maxResponseBytes is the greatest answer that is read.
const maxResponseBytes = 16 << 20

// exchange is what is known of one request and its answer.
type exchange struct {
	requestBytes int
	ignored      []string // of the params: what was not sent
	// sent says that there was a connection. Whether bytes were written to it
	// cannot be known in time: a request that is given up may still be on its
	// way to the goroutine that writes it.
	sent atomic.Bool

	status int
	header http.Header
	body   []byte // whole, or too large
}

// request makes the request, which is watched on its way out.
func (x *exchange) request(ctx context.Context, url string, body []byte) (*http.Request, error) {
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // else net/http itself sends it again, for its Idempotency-Key, when a kept connection is closed
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "worldkernel")
	return req, nil
}

// perform sends the request and reads its answer to the end.
func (x *exchange) perform(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	x.status, x.header = resp.StatusCode, resp.Header
	x.body, err = host.ReadAnswer(req.Context(), resp.Body, maxResponseBytes)
	return err
}

// answered is the result of an answer.
func (a *adapter) answered(x *exchange, price governance.LLMPrice) host.Result {
	r := host.Result{Status: receipt.StatusError, Cost: receipt.Cost{Bytes: uint64(x.requestBytes + len(x.body))}}
	data, err := canon.FromJSON(x.body)
	switch {
	case x.status < 200 || x.status > 299:
		code, reason := a.providerError(x.status, data)
		r.Payload = fault(code, reason, x.status)
		r.Cost.Tokens, r.Cost.Micros = cost(data, price)
		r.Exact = string(item(data, "usage")) == canon.Null // it was refused, and no usage is named
		if a.setup.Effect.Idempotent && (x.status == http.StatusTooManyRequests || x.status >= 500) {
			r.Class, r.RetryAfter = receipt.OutcomeRetryableFailure, host.RetryAfter(x.header, time.Now())
		}
	case len(x.body) > maxResponseBytes: // it was made, and nobody can tell what it used
		r.Class = receipt.OutcomeCompensatable
		r.Payload = fault("too_large", fmt.Sprintf("the answer is larger than %d bytes", maxResponseBytes), x.status)
	case err != nil:
		r.Payload = fault("not_a_completion", "the answer is not JSON: "+err.Error(), x.status)
	default:
		r.Cost.Tokens, r.Cost.Micros = cost(data, price)
		r.ExternalRef = text(data, "id")
		if payload, ok := completion(data, x.ignored); ok {
			r.Status, r.Payload = receipt.StatusOK, payload
		} else {
			_, reason := a.providerError(x.status, data)
			r.Payload = fault("not_a_completion", reason, x.status)
		}
	}
	return r
}

// completion returns the payload of a chat completion, for which these params
// were ignored.
func completion(data canon.Raw, ignored []string) (canon.Raw, bool) {
	choices, err := canon.Lookup(data, "choices")
	if err != nil {
		return nil, false
	}
	list := canon.NewReader(choices)
	if list.Array() == 0 {
		return nil, false
	}
	choice := list.Raw()
	message, err := canon.Lookup(choice, "message")
	if err != nil || canon.NewReader(message).Kind() != canon.KindMap {
		return nil, false
	}
	fields := map[string]canon.Raw{
		"message": message, "finish_reason": item(choice, "finish_reason"),
		"usage": item(data, "usage"), "model": item(data, "model"),
	}
	for _, of := range []canon.Raw{data, choice} { // the nearer one counts
		if fault := item(of, "error"); string(fault) != canon.Null {
			fields["error"] = fault
		}
	}
	if len(ignored) > 0 {
		names := canon.AppendArray(nil, len(ignored))
		for _, name := range ignored {
			names = canon.AppendText(names, name)
		}
		fields["ignored"] = names
	}
	return encode(fields), true
}

// cost returns tokens and micro-units of money, rounded up; too much of either is the greatest
// there is. What a server does not say nobody knows: it is 0, and the kernel charges max_cost for it,
// unless the receipt is exact. What is no natural number is impossible, and so the greatest there is:
// max_cost is charged, and the capability rests. Names of numbers are those
// of chat completions, and those of responses.
func cost(data canon.Raw, price governance.LLMPrice) (tokens, micros uint64) {
	prompt, okPrompt := count(data, "prompt_tokens", "input_tokens")
	answer, okAnswer := count(data, "completion_tokens", "output_tokens")
	total, okTotal := count(data, "total_tokens")
	if !okPrompt || !okAnswer || !okTotal {
		return math.MaxUint64, 0
	}
	if tokens = prompt + answer; tokens < prompt {
		tokens = math.MaxUint64
	}
	if tokens = max(tokens, total); prompt == 0 || tokens > prompt && answer == 0 {
		return tokens, 0 // what is priced how is not told
	}
	hi, lo := bits.Mul64(prompt, price.Prompt)
	hi2, lo2 := bits.Mul64(answer, price.Completion)
	lo, carry := bits.Add64(lo, lo2, 0)
	hi, over := bits.Add64(hi, hi2, carry)
	lo, carry = bits.Add64(lo, 999, 0)
	if over != 0 || hi >= 1000-carry {
		return tokens, math.MaxUint64
	}
	hi += carry
	micros, _ = bits.Div64(hi, lo, 1000)
	return tokens, micros
}

// count returns the greatest of the numbers that the usage has under some names, where one of
// more than 64 bits is the greatest there is; false: there is one that is no natural number.
func count(data canon.Raw, names ...string) (most uint64, ok bool) {
	for _, name := range names {
		raw := item(data, "usage", name)
		if string(raw) == canon.Null {
			continue
		}
		r := canon.NewReader(raw)
		n := r.Uint()
		if r.Err() != nil {
			if !beyond64(raw) {
				return 0, false
			}
			n = math.MaxUint64
		}
		most = max(most, n)
	}
	return most, true
}

// beyond64 reports whether a value is a number of more than 64 bits, and not below zero.
func beyond64(raw canon.Raw) bool {
	v, err := canon.Decode(raw)
	if n, ok := v.(*big.Int); ok {
		return err == nil && n.Sign() > 0
	}
	f, ok := v.(float64)
	return err == nil && ok && f >= math.MaxUint64
}

// providerError returns the provider's word and sentence for what went wrong,
// which servers put in different places.
func (a *adapter) providerError(status int, data canon.Raw) (code, reason string) {
	for _, path := range [][]string{{"error", "code"}, {"error", "type"}, {"code"}} {
		if code = text(data, path...); code != "" {
			break
		}
	}
	if code == "" {
		code = "http_" + strconv.Itoa(status)
	}
	for _, path := range [][]string{{"error", "message"}, {"error"}, {"message"}, {"detail"}} {
		if reason = text(data, path...); reason != "" {
			return code, reason
		}
	}
	reason = fmt.Sprintf("the server answered %d %s without a completion", status, http.StatusText(status))
	if said, err := canon.ToJSON(data); err == nil {
		reason += ": " + a.setup.Head(said, 200)
	}
	return code, reason
}

func fault(code, reason string, status int) canon.Raw {
	fields := map[string]canon.Raw{
		"code":  canon.AppendText(nil, strings.ToValidUTF8(code, "\uFFFD")),
		"error": canon.AppendText(nil, strings.ToValidUTF8(reason, "\uFFFD")),
	}
	if status != 0 {
		fields["status"] = canon.AppendUint(nil, uint64(status))
	}
	return encode(fields)
}

// encode encodes items that are canonical, which cannot fail.
func encode(fields map[string]canon.Raw) canon.Raw {
	raw, err := canon.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return raw
}

// item returns what is at path, or null.
func item(data canon.Raw, path ...string) canon.Raw {
	raw, err := canon.Lookup(data, path...)
	if err != nil {
		return canon.Raw(canon.Null)
	}
	return raw
}

// text returns the text at path, or none.
func text(data canon.Raw, path ...string) string {
	r := canon.NewReader(item(data, path...))
	return r.Text()
}
