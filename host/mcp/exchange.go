package mcp

import (
	"bytes"
	"cmp"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/worldkernel/worldkernel/receipt"
)

// exchange is what is known of one call of a tool. The SDK's errors do not tell
// what left and what came back: it has "rejected by transport" for a request
// that was cut in the middle.
type exchange struct {
	sent   atomic.Bool  // something of it may have left
	status atomic.Int32 // of the HTTP response; 0: none

	begun    atomic.Bool                     // the request is made; others in its context are about it, not it
	request  atomic.Pointer[jsonrpc.Request] // as it leaves over HTTP
	response atomic.Pointer[jsonrpc.Response]

	missing  atomic.Bool // the server does not know the session any more, and did nothing
	astray   atomic.Bool // the HTTP response answers another request
	tooLarge atomic.Bool // the HTTP response, which is there and was not read to its end

	method  string                       // of its request; empty: methodCall
	rewrite func(*jsonrpc.Request) error // what the SDK cannot say, on the way out; nil: nothing

	task    string                // that it is about; empty: none
	stop    func()                // ends its wait for an answer where the server asks; nil: it goes on
	answers answers               // of a person, to what calls before it have asked
	asked   *receipt.InputRequest // what the server asks while it is under way; guarded by calls

	mu   sync.Mutex
	tape []byte // of the HTTP response
}

// exchangeKey is the key of a call's *exchange in its context.
type exchangeKey struct{}

// methodCall is the method of the one request that does something.
const methodCall = "tools/call"

// The methods of what the SDK does not read whole.
const (
	methodInitialize = "initialize"
	methodListTools  = "tools/list"
)

// out returns what is to leave in the place of a request of the SDK; nil: it is not the
// exchange's.
func (x *exchange) out(msg jsonrpc.Message) (*jsonrpc.Request, error) {
	r, ok := msg.(*jsonrpc.Request)
	if x == nil || !ok || r.Method != cmp.Or(x.method, methodCall) {
		return nil, nil
	}
	sent := *r
	if x.rewrite != nil {
		if err := x.rewrite(&sent); err != nil {
			return nil, err
		}
	}
	return &sent, nil
}

// reply returns the response of the server, or nil where it did not come.
func (x *exchange) reply() *jsonrpc.Response {
	if r := x.response.Load(); r != nil {
		return r
	}
	if x.missing.Load() {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.replyIn(x.tape); r != nil {
		return r
	}
	for line := range bytes.Lines(x.tape) { // of events: see messages
		if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if r := x.replyIn(text); r != nil {
				return r
			}
		}
	}
	return nil
}

// replyIn returns the response to just this request that a text is; nil: it is none.
func (x *exchange) replyIn(data []byte) *jsonrpc.Response {
	r := decodeResponse(data)
	if r == nil || x == nil {
		return r
	}
	if sent := x.request.Load(); x.astray.Load() || sent != nil && sent.ID != r.ID {
		return nil
	}
	return r
}

func decodeResponse(data []byte) *jsonrpc.Response {
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(data))
	if err != nil {
		return nil
	}
	r, _ := msg.(*jsonrpc.Response)
	return r
}

// bounded is the body of an HTTP response.
type bounded struct {
	io.ReadCloser
	x    *exchange // which hears of the bound, or nil
	size int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.size += n; b.size > maxMessageBytes {
		if b.x != nil {
			b.x.tooLarge.Store(true)
		}
		return 0, errTooLarge
	}
	return n, err
}
