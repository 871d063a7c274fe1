package worldctl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/worldkernel/worldkernel/world/api"
)

// readTokens is api.ReadTokens with what to do about its errors.
func readTokens(file string) (*api.Tokens, error) {
	tokens, err := api.ReadTokens(file)
	switch {
	case errors.Is(err, api.ErrExposedTokens):
		err = hinted(err, "chmod 600 %s", file)
	case errors.Is(err, fs.ErrNotExist):
		err = hinted(err, "worldctl token new NAME --scope read,submit --file %s makes it", file)
	case err != nil:
		err = hinted(err, "correct that line, or take it out")
	}
	return tokens, err
}

// tokenLine is a line of a token file; see api.Tokens.
func tokenLine(name string, scopes []api.Scope, hash string, worlds []string) string {
	return strings.Join([]string{name, commas(scopes), hash, cmp.Or(strings.Join(worlds, ","), "*")}, " ")
}

func commas(scopes []api.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
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
		return nil, usagef("worldctl token list --file FILE shows those that there are", "there is no token of %q", name)
	}
	return rest, nil
}

// changeTokens puts another text into a token file, or leaves it as it is. One that
// is not there begins empty. Changes by several processes take turns.
func changeTokens(file string, change func(text []byte) ([]byte, error)) error {
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only locked
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", dir.Name(), err)
	}
	var text []byte
	if _, err = readTokens(file); err == nil {
		text, err = os.ReadFile(file)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		text, err = change(slices.Clip(text))
	}
	if err != nil {
		return err
	}
	if _, err := api.ParseTokens(text); err != nil {
		return usagef("worldctl token list --file "+file+" shows those that there are", "%w", err)
	}
	return replaceSecret(file, text)
}

// replaceSecret puts a file in its place, which only its owner can read.
func replaceSecret(file string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".new-") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
