package owner

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The limits of what is read from a socket.
const (
	maxLineBytes = 8 << 20 // a command line is shorter than what systems allow for one
	maxDataBytes = 64 << 10
)

// errMessage says that what came over a socket is not what the package comment says.
var errMessage = errors.New("not the language of the owner's socket")

// request is a command line that is to be carried out.
type request struct {
	Args   []string `json:"args"`
	Origin Origin   `json:"origin"`
}

// Origin says where a command line was typed, and by whom: in this process, or in
// another process that has asked this owner.
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

// kind says what the data of a message is.
type kind string

// The kinds of messages.
const (
	kindOut    kind = "out"    // from the owner: stdout
	kindErr    kind = "err"    // stderr
	kindWant   kind = "want"   // nothing: the command reads stdin, and waits for kindIn
	kindPrompt kind = "prompt" // what to ask the person at the terminal for: kindAnswer or kindNobody
	kindExit   kind = "exit"   // one byte, the exit code; the last message
	kindIn     kind = "in"     // to the owner: of stdin; empty: its end
	kindAnswer kind = "answer" // what was typed
	kindNobody kind = "nobody" // nothing: nobody is at the terminal
	kindCancel kind = "cancel" // nothing: the command was interrupted
)

// message is a line of a body, after the request.
type message struct {
	Kind kind   `json:"kind"`
	Data []byte `json:"data,omitempty"`
}

// messages cuts bytes into messages of a kind.
func messages(of kind, data []byte) []message {
	var out []message
	for part := range slices.Chunk(data, maxDataBytes) {
		out = append(out, message{of, bytes.Clone(part)})
	}
	return out
}

// lines reads a body.
type lines struct{ *bufio.Scanner }

func linesOf(body io.Reader) lines {
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxLineBytes)
	return lines{s}
}

// next reads the JSON of the next line, or returns io.EOF.
func (l lines) next(v any) error {
	if !l.Scan() {
		return cmp.Or(l.Err(), io.EOF)
	}
	if err := json.Unmarshal(l.Bytes(), v); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	return nil
}
