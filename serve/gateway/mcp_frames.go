package gateway

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/worldkernel/worldkernel/host/mcp"
)

// The gateway and the program in the server's place send each other frames: a kind, a length (4 bytes, big-endian) and
// so many bytes.
const (
	frameClient  = 'c' // a line from or to the client
	frameServer  = 's' // likewise the server
	frameClients = 'C' // both ends of a line of the client that is too long
	frameServers = 'S' // likewise of the server
	frameStart   = 'o' // to the program: start the server
	frameStop    = 'q' // likewise: the server's input ends
	frameLeft    = 'e' // to the gateway: the client's input has ended
	frameEnded   = 'x' // likewise: the server has ended
)

// Limits of a connection.
const (
	maxLine     = 16 << 20 // bytes of a message
	maxQueued   = 64 << 20 // bytes that wait for a reader
	maxEnvelope = 64 << 10 // bytes that are written about a message
)

// errSlow says that a reader does not read.
var errSlow = errors.New("the other side does not read what it is sent")

type frame struct {
	kind byte
	data []byte
}

// readFrame reads a frame.
func readFrame(r io.Reader) (f frame, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxLine+maxEnvelope {
		return f, fmt.Errorf("gateway: a frame of %d bytes", n)
	}
	f = frame{head[0], make([]byte, n)}
	_, err = io.ReadFull(r, f.data)
	return f, err
}

// frameOf returns a frame as it is sent: at once, since a part of one wakes its reader for nothing.
func frameOf(kind byte, data []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(data))) //nolint:gosec // at most maxLine and a little
	return append(head, data...)
}

// queue holds what is on its way to a writer that may be slow. It is safe for concurrent use.
type queue struct {
	mu   sync.Mutex
	some *sync.Cond
	held []byte
	err  error // why nothing more is written
}

// newQueue returns the queue of a writer. Done is called when nothing more will be written.
func newQueue(w io.Writer, done func(error)) *queue {
	q := new(queue)
	q.some = sync.NewCond(&q.mu)
	go func() { done(q.write(w)) }()
	return q
}

// put has pieces written, and reports whether they may be.
func (q *queue) put(pieces ...[]byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range pieces {
		if q.err == nil {
			q.held = append(q.held, p...)
		}
	}
	if len(q.held) > maxQueued && q.err == nil {
		q.err = errSlow
	}
	q.some.Signal()
	return q.err == nil
}

// frame has a frame written.
func (q *queue) frame(kind byte, data []byte) bool { return q.put(frameOf(kind, data)) }

// close has nothing more written but what waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = io.EOF
	}
	q.some.Signal()
}

func (q *queue) write(w io.Writer) error {
	for {
		q.mu.Lock()
		for len(q.held) == 0 && q.err == nil {
			q.some.Wait()
		}
		p, err := q.held, q.err
		q.held = nil
		q.mu.Unlock()
		if len(p) > 0 && !errors.Is(err, errSlow) {
			if _, failed := w.Write(p); failed != nil {
				q.mu.Lock()
				q.err = failed
				q.mu.Unlock()
				return failed
			}
		}
		if err != nil {
			return err
		}
	}
}

// eachLine reads lines to the end. Large takes those that are longer than most, of which there are both ends: see mcp.ReadLine.
func eachLine(from io.Reader, most int, take, large func(line []byte)) {
	for r := bufio.NewReaderSize(from, 64<<10); ; {
		line, whole, err := mcp.ReadLine(r, most)
		switch {
		case err != nil:
			return
		case !whole && large != nil:
			large(line)
		case whole && len(bytes.TrimSpace(line)) > 0:
			take(line)
		}
	}
}
