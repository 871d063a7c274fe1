package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// silence is how long a server may take for what it need not answer: a
// notification, and the request by which the SDK finds out whether it speaks the
// protocol without sessions. Servers of before ignore what they do not know,
// though JSON-RPC asks for an error, and the SDK would wait for good. A program
// that is slower finds both beginnings of a session in its input.
const silence = 2 * time.Second

// methodDiscover is that request.
const methodDiscover = "server/discover"

// probeKey is there in the context of a discovery.
type probeKey struct{}

// bearSilence is middleware of a client.
func bearSilence(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		notification := strings.HasPrefix(method, "notifications/")
		if !notification && method != methodDiscover {
			return next(ctx, method, req)
		}
		patient, cancel := context.WithTimeout(context.WithValue(ctx, probeKey{}, method == methodDiscover), silence)
		defer cancel()
		result, err := next(patient, method, req)
		if notification && patient.Err() != nil && ctx.Err() == nil {
			return nil, nil // it is sent, and asks for no answer
		}
		return result, err
	}
}

// probed returns the response to a discovery, or, where it is none, one that has
// the SDK go on with a session: it gives up the connection at another.
func probed(resp *http.Response) *http.Response {
	x := &exchange{}
	normalize(resp, x)
	body := resp.Body
	for piece := make([]byte, 4<<10); x.reply() == nil; {
		if _, err := body.Read(piece); err != nil {
			break
		}
	}
	if x.reply() == nil && resp.StatusCode < http.StatusBadRequest {
		_ = body.Close()
		resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
		resp.Body, resp.ContentLength = http.NoBody, 0
		return resp
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(bytes.Clone(x.tape)), body), body}
	return resp
}
