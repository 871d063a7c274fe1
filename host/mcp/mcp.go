// Package mcp calls the tools of servers that speak the Model Context Protocol,
// over the standard streams of a program that it runs or over streamable HTTP.
//
// governance.ParseMCP says what config and params are. A program is run without
// a shell, in the world's directory, in a process group of its own, and knows
// of its surroundings only PATH, LANG and the config's env; its name is
// relative to the world's directory if it has a slash. The first call begins a
// session with the server, which calls share; after one has broken the next
// call begins another. A call carries its idempotency key in _meta, as
// "worldkernel/idempotency-key". Redirects are not followed, proxies do not
// come from the environment, and an address is dialled wherever it is: it
// stands in the manifest, which people review. A tool that runs as a task
// (MCP 2025-11-25) answers with the task's id, which later calls ask about.
//
// # Payload
//
//	content      as the server wrote it
//	structured   likewise, or null
//	is_error     whether the tool failed: then the status is error
//
// and of what failed otherwise {code, error}.
//
// # Failures
//
//	no session, or the call did not leave   retryable, nothing left
//	the program is not there                permanent, nothing left
//	the server has no such tool             permanent, nothing left
//	no whole answer came                    nobody can tell
//	the server answers with an error        permanent
//	HTTP 429, 5xx                           permanent
//	HTTP 2xx of more than 16 MiB            compensatable: the tool did its work
//
// Where no whole answer came, and of HTTP 429 and 5xx, the failure is retryable
// if the effect is idempotent, or has no class and the server says that the tool
// reads only or is idempotent.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// metaKey is where in _meta a server finds the idempotency key of a call.
const metaKey = "worldkernel/idempotency-key"

// New is a host.Factory. Its adapters are io.Closers. Those of one Host whose configs
// name the same server in the same way share a session; the last Close ends it and
// the server's program.
func New(s host.Setup) (host.Adapter, error) {
	p, ok := s.Shared[poolKey{}].(*pool)
	if !ok {
		p = &pool{servers: map[string]*server{}}
		if s.Shared != nil {
			s.Shared[poolKey{}] = p
		}
	}
	server, err := p.get(s)
	if err != nil {
		return nil, err
	}
	return &adapter{setup: s, server: server, release: sync.OnceFunc(func() { p.put(server) })}, nil
}

// poolKey is where in what factories share the pool is.
type poolKey struct{}

type adapter struct {
	setup host.Setup
	*server
	release func()
}

// Close ends the session if no other adapter needs it.
func (a *adapter) Close() error {
	a.release()
	return nil
}

// Perform calls a tool.
func (a *adapter) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	target, err := governance.ParseMCP(a.setup.Config, call.Permit.Params)
	if err != nil {
		return host.Refused(err), nil
	}
	arguments, err := canon.ToJSON(target.Arguments)
	if err != nil {
		return host.Refused(err), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)()
	params := map[string]any{
		"name": target.Tool, "arguments": json.RawMessage(arguments),
		"_meta": map[string]any{metaKey: call.External, "traceparent": call.Permit.Key.TraceParent(call.Permit.Attempt)},
	}
	if err := answers(call.Permit.Inputs).addTo(params); err != nil {
		return host.Refused(err), nil
	}
	for again := true; ; again = false {
		s, err := a.session(ctx)
		if err != nil {
			return unsent(ctx, err), nil
		}
		tool, err := s.tool(ctx, target.Tool)
		if err == nil && tool == nil {
			return permanent(true, "no_such_tool", fmt.Sprintf("the server has no tool %q", target.Tool)), nil
		}
		x := &exchange{answers: call.Permit.Inputs, headers: make(map[string]string)}
		if err == nil && s.wantsHeaders() {
			schema, _ := canon.Decode(tool.Schema) // it may have none
			if err := headersOf(schema, target.Arguments, x.headers, make(map[string]bool)); err != nil {
				return permanent(true, "bad_tool", "the server describes a tool that no client may call: "+err.Error()), nil
			}
		}
		var response *message
		var asked *receipt.InputRequest
		if err == nil {
			response, asked, err = s.call(ctx, x, tool, params, target.Task)
		}
		unsent := err != nil && (!x.sent.Load() || x.missing.Load()) && ctx.Err() == nil
		if unsent || errors.Is(err, errEnded) || errors.Is(err, errSessionMissing) {
			a.drop(s)
		}
		if unsent && again && !host.Short(err) { // the session may have broken before this call
			continue
		}
		r, err := a.result(ctx, x, tool, response, asked, err)
		r.Cost.Bytes = uint64(len(arguments) + len(r.Payload))
		return r, err
	}
}

// wantsHeaders reports whether arguments of tools may have to stand in headers, as they do over HTTP without sessions.
func (s *session) wantsHeaders() bool {
	_, is := s.link.(*web)
	return is && s.spoken.Load().meta != nil
}

// call makes a call of a tool, and returns the answer and what the server has asked during it.
func (s *session) call(ctx context.Context, x *exchange, tool *Tool, params map[string]any, wanted bool) (*message, *receipt.InputRequest, error) {
	delete(params, "task")
	if x.asTask = s.calls.runsAsTask(tool.task, wanted); x.asTask {
		params["task"] = map[string]int64{"ttl": taskTTL.Milliseconds()}
	}
	if err := s.calls.beginCall(ctx, x); err != nil {
		return nil, nil, err
	}
	response, err := s.ask(ctx, x, methodCall, params)
	asked, perhaps := s.calls.endCall(x, response != nil)
	if perhaps != nil && err != nil {
		err = fmt.Errorf("%w; meanwhile the server asked %q, and several calls were under way", err, perhaps.Message)
	}
	return response, asked, err
}
