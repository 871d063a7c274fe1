package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// jsonError is a fault at a path. The path is put together on the way out, so
// that values without a fault do not pay for it.
type jsonError struct {
	path string
	err  error
}

func (e *jsonError) Error() string { return fmt.Sprintf("canon: %s: %v", e.path, e.err) }
func (e *jsonError) Unwrap() error { return e.err }

// below puts the path of err under step. An errNotRead has none.
func below(step string, err error) error {
	if errors.Is(err, errNotRead) {
		return err
	}
	if inner := (*jsonError)(nil); errors.As(err, &inner) {
		return &jsonError{step + inner.path, inner.err}
	}
	return &jsonError{step, err}
}

// faultOf says what is wrong with a text that a jsonReader cannot read, in the words of
// encoding/json, which reads it token by token and keeps none.
func faultOf(data []byte, maxDigits int) error {
	w := jsonWalker{json.NewDecoder(bytes.NewReader(data)), maxDigits}
	w.UseNumber()
	if err := w.value(MaxDepth); err != nil {
		return below("$", err)
	}
	if _, err := w.Token(); !errors.Is(err, io.EOF) {
		return errors.New("canon: more than one JSON value")
	}
	return nil
}

// jsonWalker walks over the tokens of one JSON value.
type jsonWalker struct {
	*json.Decoder
	maxDigits int // of an integer
}

// value walks over the next value; depth is how many containers may still be opened.
func (w *jsonWalker) value(depth int) error {
	token, err := w.next()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == 0 {
			return fmt.Errorf("nested deeper than %d", MaxDepth)
		}
		return w.items(t == '{', depth-1)
	case json.Number:
		_, err = appendNumber(nil, t.String(), w.maxDigits)
	}
	return err
}

// items walks over what is in a container, to its end.
func (w *jsonWalker) items(object bool, depth int) error {
	for n := 0; w.More(); n++ {
		var name string
		if object {
			token, err := w.next()
			if err != nil {
				return err
			}
			name, _ = token.(string) // the decoder lets nothing else stand here
		}
		if err := w.value(depth); err != nil {
			if object {
				return below("."+name, err)
			}
			return below("["+strconv.Itoa(n)+"]", err)
		}
	}
	_, err := w.next()
	return err
}

func (w *jsonWalker) next() (json.Token, error) {
	token, err := w.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return token, nil
}
