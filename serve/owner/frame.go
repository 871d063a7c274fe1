package owner

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// socketVersion is the version of what the package comment says.
const socketVersion = 1

// The limits of what is read from a socket.
const (
	maxHeaderBytes = 8 << 20 // a command line is shorter than what systems allow for one
	maxFrameBytes  = 64 << 10
)

// errFrame says that what came over a socket is not what the package comment says.
var errFrame = errors.New("not the language of the owner's socket")

// request is a command line that is to be carried out.
type request struct {
	Version int      `json:"version"`
	Args    []string `json:"args"`
	Origin  Origin   `json:"origin"`
}

// Origin is where and by whom a command line was typed: in this process, or in
// another one for which this one carries it out.
type Origin struct {
	Width   int  `json:"width"`   // of the terminal that stdout is, in columns; 0: it is none
	Console bool `json:"console"` // stderr is a terminal
	Plain   bool `json:"plain"`   // no colors are wanted

	Program string `json:"program"` // as it is typed; empty: worldctl

	// Where it was typed in another process. They are empty for this one.
	Dir        string  `json:"dir"`        // the working directory
	Stored     bool    `json:"stored"`     // the world was named by its id in a store
	Login      string  `json:"login"`      // for the journal
	Passphrase *string `json:"passphrase"` // in the environment; nil: there is none
}

// response says whether it is.
type response struct {
	Version int    `json:"version"`
	Refused string `json:"refused"` // why it is not; empty: it is
}

// writeHeader writes a request or a response.
func writeHeader(w io.Writer, header any) error {
	line, err := json.Marshal(header)
	if err == nil && len(line) >= maxHeaderBytes {
		err = fmt.Errorf("the command line is longer than %d bytes", maxHeaderBytes)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// readHeader reads what writeHeader wrote. Fields that it does not know are of
// another version, which the version tells better.
func readHeader(r *bufio.Reader, header any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxHeaderBytes {
			return fmt.Errorf("%w: a header is longer than %d bytes", errFrame, maxHeaderBytes)
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	if err := json.Unmarshal(line, header); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}

// frameKind says what the bytes of a frame are.
type frameKind byte

// The kinds of frames.
const (
	frameOut    frameKind = 'o' // from the owner: stdout
	frameErr    frameKind = 'e' // stderr
	frameWant   frameKind = 'w' // nothing: the command reads stdin, and waits for frameIn
	framePrompt frameKind = 'p' // what to ask the person at the terminal for: frameAnswer or frameNobody
	frameExit   frameKind = 'x' // one byte, the exit code; the last frame

	frameIn     frameKind = 'i' // to the owner: of stdin; empty: its end
	frameAnswer frameKind = 'a' // what was typed
	frameNobody frameKind = 'n' // nothing: nobody is at the terminal
	frameCancel frameKind = 'c' // nothing: the command was interrupted
)

// frame is a piece of what goes over a socket.
type frame struct {
	kind frameKind
	data []byte
}

// check reports why a frame is none.
func (f frame) check() error {
	length := 0
	switch f.kind {
	case frameOut, frameErr, framePrompt, frameIn, frameAnswer:
		length = len(f.data)
	case frameExit:
		length = 1
	case frameWant, frameNobody, frameCancel:
	default:
		return fmt.Errorf("%w: unknown kind of frame %q", errFrame, rune(f.kind))
	}
	if len(f.data) > maxFrameBytes || len(f.data) != length {
		return fmt.Errorf("%w: a frame of kind %q has %d bytes", errFrame, rune(f.kind), len(f.data))
	}
	return nil
}

// writeFrame writes a frame with one call.
func writeFrame(w io.Writer, f frame) error {
	if err := f.check(); err != nil {
		return err
	}
	b := make([]byte, 0, frameHead+len(f.data))
	b = append(b, byte(f.kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.data)))
	_, err := w.Write(append(b, f.data...))
	return err
}

// frameHead is how many bytes come before those of a frame.
const frameHead = 1 + 4

// readFrame reads what writeFrame wrote, with an io.EOF where nothing follows.
func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxFrameBytes {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes", errFrame, length)
	}
	f := frame{kind: frameKind(head[0]), data: make([]byte, length)}
	if _, err := io.ReadFull(r, f.data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return f, f.check()
}

// frames cuts bytes into frames of a kind.
func frames(kind frameKind, data []byte) []frame {
	var out []frame
	for part := range slices.Chunk(data, maxFrameBytes) {
		out = append(out, frame{kind, bytes.Clone(part)})
	}
	return out
}
