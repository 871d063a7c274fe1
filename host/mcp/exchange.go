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

	begun    atomic.Bool // the request is made; others in its context are about it, not it
	response atomic.Pointer[jsonrpc.Response]

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
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := decodeResponse(x.tape); r != nil {
		return r
	}
	// Server-sent events: data in one line or several, then an empty one.
	var data []byte
	for line := range bytes.Lines(append(x.tape[:len(x.tape):len(x.tape)], "\n\n"...)) {
		line = bytes.TrimRight(line, "\r\n")
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, text...), '\n')
		} else if len(line) == 0 {
			if r := decodeResponse(data); r != nil {
				return r
			}
			data = data[:0]
		}
	}
	return nil
}

func decodeResponse(data []byte) *jsonrpc.Response {
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(data))
	if err != nil {
		return nil
	}
	r, _ := msg.(*jsonrpc.Response)
	return r
}

// taped is the body of an HTTP response, bounded and copied to an exchange.
type taped struct {
	io.ReadCloser
	x    *exchange // nil: not copied
	size int
}

func (b *taped) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.size += n; b.size > maxMessageBytes {
		if b.x != nil {
			b.x.tooLarge.Store(true)
		}
		return 0, errTooLarge
	}
	if b.x != nil {
		b.x.mu.Lock()
		b.x.tape = append(b.x.tape, p[:n]...)
		b.x.mu.Unlock()
	}
	return n, err
}
