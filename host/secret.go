package host

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// Bounds of secrets.
const (
	maxSecretName  = 64       // characters
	maxSecretBytes = 64 << 10 // of a value
	minRedacted    = 4        // bytes: a shorter value would be found everywhere, and hides nothing
	minInNumber    = 8        // digits: a shorter value is looked for as a number of its own, not in others
)

const secretScheme = "secret://"

// secretEnv is what the name of an environment variable begins with that holds
// a secret.
const secretEnv = "WORLDCTL_SECRET_"

// Why a secret is not to be had.
var (
	ErrNotSecretReference = errors.New("not a reference to a secret: want secret://NAME, a name of 1 to 64 of A-Z a-z 0-9 _ . -")
	ErrNoSecret           = errors.New("there is no such secret")
	ErrExposedSecret      = errors.New("others can read the file: chmod 600")
	ErrBadSecret          = errors.New("the value is empty, too long or not text")
)

// SecretError says why a secret is not to be had. An attempt that needs it is not
// made; see Refused.
type SecretError struct {
	Reference string // secret://NAME
	Err       error
}

func (e *SecretError) Error() string { return e.Reference + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *SecretError) Unwrap() error { return e.Err }

// Secrets returns a look-up of secrets by name: in the environment variable
// WORLDCTL_SECRET_NAME, then in the file dir/NAME, which nobody but its owner
// may be able to read and of which a last newline is cut. It asks anew every
// time, and is safe for concurrent use.
func Secrets(dir string) func(name string) (string, error) {
	return func(name string) (string, error) {
		if value, found := os.LookupEnv(secretEnv + name); found {
			return value, nil
		}
		file := filepath.Join(dir, name)
		value, err := readSecret(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: neither the environment variable %s%s nor the file %s", ErrNoSecret, secretEnv, name, file)
		}
		if err != nil {
			return "", fmt.Errorf("file %s: %w", file, err)
		}
		return value, nil
	}
}

func readSecret(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return "", cause(err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", cause(err)
	case !info.Mode().IsRegular():
		return "", errNotRegular
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("mode is %#o: %w", info.Mode().Perm(), ErrExposedSecret)
	}
	value, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+2))
	if err != nil {
		return "", cause(err)
	}
	text := strings.TrimSuffix(string(value), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// secrets resolves references and remembers every value that it has given
// away, so that none gets into the journal. It is safe for concurrent use.
type secrets struct {
	lookup func(name string) (string, error)

	mu     sync.RWMutex
	forms  map[string]string // what to replace, by what
	finder *finder           // nil: nothing
	// numeric says that one of the values is a number.
	numeric bool
}

func newSecrets(lookup func(name string) (string, error)) *secrets {
	return &secrets{lookup: lookup, forms: make(map[string]string)}
}

// resolve returns the value of "secret://NAME".
func (s *secrets) resolve(reference string) (string, error) {
	name, ok := strings.CutPrefix(reference, secretScheme)
	if !ok || !secretName(name) {
		return "", ErrNotSecretReference // without the text, which may be a secret itself
	}
	value, err := s.lookup(name)
	if err == nil && (value == "" || len(value) > maxSecretBytes || !utf8.ValidString(value)) {
		err = ErrBadSecret
	}
	if err != nil {
		return "", &SecretError{reference, err}
	}
	s.remember(value, reference)
	return value, nil
}

// secretName reports whether a name is one, and stays in its directory as the
// name of a file.
func secretName(name string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	return name != "" && len(name) <= maxSecretName && !strings.ContainsFunc(name, odd) && strings.Trim(name, ".") != ""
}

func (s *secrets) remember(value, reference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.forms[value]; known || len(value) < minRedacted {
		return
	}
	s.numeric = s.numeric || len(numerals(value)) > 0
	for _, form := range encodings(value) {
		if _, known := s.forms[form]; !known {
			s.forms[form] = reference
		}
	}
	f := &finder{forms: make(map[string][]form)}
	for text, reference := range s.forms { // order cannot show: add keeps its own
		f.add(text, reference)
	}
	s.finder = f
}

// encodings returns the forms in which a value may come back from the outside.
func encodings(value string) []string {
	html, err := json.Marshal(value)
	if err != nil {
		panic(err) // a string always encodes
	}
	text := canon.Raw(canon.AppendText(nil, value))
	plain, err := canon.ToJSON(text)
	if err != nil {
		panic(err) // resolve lets nothing but UTF-8 through
	}
	forms := []string{
		value,
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value)),
		base64.URLEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
		url.QueryEscape(value), strings.ReplaceAll(url.QueryEscape(value), "+", "%20"),
		url.PathEscape(value), (&url.URL{Path: value}).EscapedPath(),
		string(html[1 : len(html)-1]), string(plain[1 : len(plain)-1]),
	}
	return slices.DeleteFunc(append(forms, numerals(value)...), func(form string) bool { return len(form) < minRedacted })
}

// numerals returns the forms of a value that is a number, as numberText writes
// it.
func numerals(value string) []string {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	forms := []string{strconv.FormatFloat(math.Abs(f), 'f', -1, 64)}
	if digits := strings.TrimLeft(value, "+-0"); strings.Trim(digits, "0123456789") == "" {
		forms = append(forms, digits)
	}
	return forms
}

// numberText returns a number of a decoded payload without exponent; false: v
// is none.
func numberText(v any) (string, bool) {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case *big.Int:
		return v.String(), true
	}
	return "", false
}

// find returns where values given away so far stand in a text.
func (s *secrets) find(text string) []match {
	s.mu.RLock()
	finder := s.finder
	s.mu.RUnlock()
	return finder.find(text)
}

// redactText replaces every value given away so far, in all its forms, by its
// reference.
func (s *secrets) redactText(text string) string { return replace(text, s.find(text), 0) }

// hide keeps secrets out of an error; one without any stays what it is.
func (s *secrets) hide(err error) error {
	if text := s.redactText(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// redactNumber returns the number with this text, or a text instead of one that
// is a value, or holds one long enough that it is no chance.
func (s *secrets) redactNumber(v any, text string) any {
	for _, m := range s.find(text) {
		if n := m.to - m.from; n >= minInNumber || n == len(strings.TrimPrefix(text, "-")) {
			return s.redactText(text)
		}
	}
	return v
}

// redact returns r without the values given away so far. It does not change
// what r points to.
func (s *secrets) redact(r Result) Result {
	// Strings of canonical CBOR are in one piece, so what is in none of them is
	// not in the bytes either. Of numbers that cannot be said.
	s.mu.RLock()
	numeric := s.numeric
	s.mu.RUnlock()
	if numeric || len(s.find(string(r.Payload))) > 0 {
		r.Payload = s.redactPayload(r.Payload)
	}
	r.ExternalRef = s.redactText(r.ExternalRef)
	if r.StateChange != nil {
		change := *r.StateChange
		for _, text := range []*string{&change.Resource, &change.Version, &change.ETag, &change.ExternalRef} {
			*text = s.redactText(*text)
		}
		r.StateChange = &change
	}
	return r
}

func (s *secrets) redactPayload(payload receipt.Data) receipt.Data {
	v, err := canon.Decode(payload)
	if err == nil {
		payload, err = canon.Marshal(s.redactValue(v))
	}
	if err != nil { // a fault of the adapter: without a form there is nothing to save
		return canon.AppendText(nil, "the payload was not canonical and held a secret")
	}
	return payload
}

func (s *secrets) redactValue(v any) any {
	switch v := v.(type) {
	case string:
		return s.redactText(v)
	case []byte:
		return []byte(s.redactText(string(v)))
	case []any:
		for i := range v {
			v[i] = s.redactValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := s.redactText(key)
			for _, taken := out[name]; taken; _, taken = out[name] { // two forms of one secret
				name += "'"
			}
			out[name] = s.redactValue(v[key])
		}
		return out
	}
	if text, ok := numberText(v); ok {
		return s.redactNumber(v, text)
	}
	return v
}
