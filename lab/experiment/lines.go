package experiment

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// A line ends with the sum of all that it says before.
const (
	sumKey  = `,"sum":"`
	sumEnd  = `"}` + "\n"
	sumSize = len(sumKey) + 2*sha256.Size + len(sumEnd)
)

// Why a line is not what was written.
var (
	errSum     = errors.New("its sum is that of another line")
	errEndless = errors.New("its end is not that of a line")
	errMore    = errors.New("it says more than one thing")
)

// DamageError says that a line of the log of results, or of the file of answers, is not what
// was written.
type DamageError struct {
	File    string
	Line    int
	Answers bool // it is of the file of answers
	Err     error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s:%d: the line is not what was written: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// withSum ends the text of an object, which has no closing bracket, with its sum, which is
// also of what it is a line of.
func withSum(of, open []byte) []byte {
	h := sha256.New()
	h.Write(of)
	h.Write(open)
	return append(append(append(open, sumKey...), hex.EncodeToString(h.Sum(nil))...), sumEnd...)
}

// withoutSum returns the object that a line was before withSum.
func withoutSum(of, text []byte) ([]byte, error) {
	n := len(text) - sumSize
	if n < 0 || !bytes.Equal(withSum(of, bytes.Clone(text[:n])), text) {
		return nil, errSum
	}
	return append(text[:n:n], '}'), nil
}

// encodeLine returns the line of an object, with its end.
func encodeLine(of []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return withSum(of, text[:len(text)-1]), nil
}

// decodeLine parses a line.
func decodeLine(of, text []byte, v any) error {
	object, err := withoutSum(of, text)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}

// lines are a file of lines with sums. What a kill or a power failure has left of the last
// one is no line, and is written over.
type lines struct {
	file *os.File // nil: there is none
	of   []byte   // what the sums are of besides what the lines say
	size int64    // of the whole lines
}

// readLines has note take each line, which begins at a place in the file. An error of note is
// damage.
func (l *lines) readLines(note func(text []byte, at int64) error) error {
	l.size = 0
	in := bufio.NewReaderSize(io.NewSectionReader(l.file, 0, math.MaxInt64), 1<<20)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		switch {
		case err == nil:
			err = note(text, l.size)
		case !errors.Is(err, io.EOF):
			return err
		case !l.endless(text): // a kill has cut it off, or somebody writes it now
			return nil
		default:
			err = errEndless
		}
		if err != nil {
			rest, _ := in.Peek(1)
			if len(rest) == 0 && bytes.IndexByte(text, 0) >= 0 { // a part of the last that a power failure has left unwritten
				return nil
			}
			return &DamageError{File: l.file.Name(), Line: n, Err: err}
		}
		l.size += int64(len(text))
	}
}

// endless reports whether a text that has no end of a line is a whole one but for that: a kill
// cannot leave it.
func (l *lines) endless(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	_, err := withoutSum(l.of, append(bytes.Clone(text[:len(text)-1]), '\n'))
	return err == nil
}

// add appends a line. What is left of one that cannot be written is taken away, so that others
// can be.
func (l *lines) add(text []byte) error {
	if _, err := l.file.WriteAt(text, l.size); err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(text))
	return nil
}

func (l *lines) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
