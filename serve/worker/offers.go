package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/serve/api"
)

// errTooMany says that a server offers more than it was asked for.
var errTooMany = errors.New("the answer has more offers than were asked for")

// readOffers reads an answer with offers, one after the other: so many at most, and of
// their params only the bytes.
func readOffers(body io.Reader, most int, out *api.Offers) error {
	in := json.NewDecoder(&bounded{body, maxOffers})
	if err := isDelim(in, '{'); err != nil {
		return err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return unreadable(err)
		}
		switch name {
		case "manifest":
			err = in.Decode(&out.Manifest)
		case "offers":
			err = readEach(in, most, out)
		default:
			err = skip(in)
		}
		if err != nil {
			return unreadable(err)
		}
	}
	return isDelim(in, '}')
}

func readEach(in *json.Decoder, most int, out *api.Offers) error {
	if err := isDelim(in, '['); err != nil {
		return err
	}
	for in.More() {
		if len(out.Offers) == most {
			return errTooMany
		}
		var o api.Offer
		if err := in.Decode(&o); err != nil {
			return err
		}
		o.Params = nil // they are in Raw
		out.Offers = append(out.Offers, o)
	}
	return isDelim(in, ']')
}

// skip reads the next value and keeps nothing of it.
func skip(in *json.Decoder) error {
	for depth := 0; ; {
		token, err := in.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func isDelim(in *json.Decoder, want json.Delim) error {
	is, err := in.Token()
	if err == nil && is != want {
		err = fmt.Errorf("%v stands where %v has to", is, want)
	}
	return unreadable(err)
}

func unreadable(err error) error {
	if err == nil || errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) {
		return err
	}
	return fmt.Errorf("the answer is not what it has to be: %w", err)
}

// bounded is an answer that may have so many bytes and no more.
type bounded struct {
	io.Reader

	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
