package api

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/worldkernel/worldkernel/internal/file"
)

// ErrNoToken says that a token file has none of a name.
var ErrNoToken = errors.New("there is no such token")

// ClashError says why a token cannot be beside the others of a file.
type ClashError struct{ err error }

func (e *ClashError) Error() string { return e.err.Error() }
func (e *ClashError) Unwrap() error { return e.err }

// Text is the line of a token file, for the token with a hash that NewToken made.
func (t TokenLine) Text(hash string) string {
	words := []string{t.Name, t.ScopeList(), hash, cmp.Or(strings.Join(t.Worlds, ","), allWorlds)}
	if t.Ahead != "" {
		words = append(words, aheadWord+t.Ahead)
	}
	return strings.Join(words, " ")
}

// ScopeList is the scopes with commas between them.
func (t TokenLine) ScopeList() string {
	names := make([]string, len(t.Scopes))
	for i, s := range t.Scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

// AddToken adds a line to a token file, which is made if it is not there. A
// *ClashError says that it does not go with the others. Changes by several processes
// take turns, and one that fails leaves the file as it is.
func AddToken(file, line string) error {
	return changeTokens(file, func(text []byte) ([]byte, error) {
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			text = append(text, '\n')
		}
		return append(text, line+"\n"...), nil
	})
}

// RevokeToken takes the line of a token out of a file, and nothing else; see AddToken.
// The error is ErrNoToken where there is none.
func RevokeToken(file, name string) error {
	return changeTokens(file, func(text []byte) ([]byte, error) { return withoutToken(text, name) })
}

// withoutToken leaves out the line of a token, and nothing else.
func withoutToken(text []byte, name string) ([]byte, error) {
	var rest []byte
	found := false
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) > 0 && string(words[0]) == name {
			found = true
			continue
		}
		rest = append(rest, line...)
	}
	if !found {
		return nil, ErrNoToken
	}
	return rest, nil
}

// changeTokens puts another text into a token file, or leaves it as it is.
func changeTokens(path string, change func(text []byte) ([]byte, error)) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only locked
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", dir.Name(), err)
	}
	var text []byte
	if _, err = ReadTokens(path); err == nil {
		text, err = os.ReadFile(path)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		text, err = change(text)
	}
	if err != nil {
		return err
	}
	if _, err := ParseTokens(text); err != nil {
		return &ClashError{err}
	}
	return file.Put(path, text, 0o600)
}
