package canon

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// plainError says in other words what an error is.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// PlainJSON returns what encoding/json says of a text that cannot be read in words for
// who wrote the text. The error wraps the library's, and io.ErrUnexpectedEOF where the text
// ends too early. Any other error is returned as it is.
func PlainJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var base base64.CorruptInputError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &plainError{"not JSON: it ends in the middle", io.ErrUnexpectedEOF}
	case errors.As(err, &syntax):
		return &plainError{fmt.Sprintf("not JSON near byte %d", syntax.Offset), err}
	case errors.As(err, &kind):
		return &plainError{fmt.Sprintf("%s cannot be a JSON %s", named(kind.Field), kind.Value), err}
	case errors.As(err, &base):
		return &plainError{fmt.Sprintf("not base64 from byte %d on", int64(base)+1), err}
	case err != nil && strings.HasPrefix(err.Error(), "json: "):
		return &plainError{strings.TrimPrefix(err.Error(), "json: "), err}
	}
	return err
}

func named(field string) string {
	if field == "" {
		return "it"
	}
	return field
}

// Plain returns an error of [UnmarshalTrusted] about a value that does not fit, however
// it is wrapped, in words for who wrote the value: "max_bytes has to be a whole
// number". The error wraps err. Any other error is returned as it is.
//
// Only what no journal holds may be said so: what a gate says of params is part of a
// world's history, in the words of the library.
func Plain(err error) error {
	var wrong *cbor.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field := wrong.StructFieldName[strings.LastIndexByte(wrong.StructFieldName, '.')+1:]
	text := fmt.Sprintf("%s has to be %s", named(field), wantedIn(wrong.GoType))
	return &plainError{strings.Replace(err.Error(), "canon: "+wrong.Error(), text, 1), err}
}

// wantedIn names what a Go type holds.
func wantedIn(goType string) string {
	for _, is := range [][2]string{
		{"string", "a text"},
		{"bool", "true or false"},
		{"uint", "a whole number"},
		{"int", "a whole number"},
		{"float", "a number"},
		{"map", "a mapping"},
		{"[]", "a list"},
	} {
		if strings.HasPrefix(goType, is[0]) {
			return is[1]
		}
	}
	return "something else"
}
