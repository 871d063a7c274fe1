package file_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/file"
)

var errStopped = errors.New("stopped")

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestReplaceIsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "x")
	require.NoError(t, file.Put(at, []byte("before"), 0o644))
	err := file.Replace(at, 0o644, func(w io.Writer) error {
		_, err := w.Write([]byte("half"))
		return errors.Join(err, errStopped)
	})
	require.ErrorIs(t, err, errStopped)
	data, err := file.Read(at, 10)
	require.NoError(t, err)
	require.Equal(t, "before", string(data))
	require.Equal(t, []string{"x"}, names(t, dir))

	require.NoError(t, file.Put(at, []byte("secret"), 0o600))
	data, err = file.ReadSecret(at, 6)
	require.NoError(t, err)
	require.Equal(t, "secret", string(data))

	err = file.Put(filepath.Join(dir, "none", "x"), nil, 0o644)
	at2 := (*fs.PathError)(nil)
	require.ErrorAs(t, err, &at2)
	require.Equal(t, filepath.Join(dir, "none"), at2.Path)
}

func TestReadsNoMoreThanWanted(t *testing.T) {
	at := filepath.Join(t.TempDir(), "x")
	require.NoError(t, file.WriteNew(at, []byte("12345"), 0o644))
	_, err := file.Read(at, 5)
	require.NoError(t, err)
	_, err = file.Read(at, 4)
	require.ErrorIs(t, err, file.ErrSize)
	_, err = file.ReadSecret(at, 5)
	require.ErrorIs(t, err, file.ErrExposed)
	_, err = file.ReadSecret(filepath.Dir(at), 5)
	require.Error(t, err)
}

func TestReadRegularWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	at, pipe := filepath.Join(dir, "x"), filepath.Join(dir, "pipe")
	require.NoError(t, file.WriteNew(at, []byte("12345"), 0o644))
	data, err := file.ReadRegular(at, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(data))
	_, err = file.ReadRegular(at, 4)
	require.ErrorIs(t, err, file.ErrSize)
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, dir, "/dev/zero"} {
		_, err = file.ReadRegular(path, 5)
		require.ErrorIs(t, err, file.ErrIrregular)
		require.ErrorAs(t, err, new(*fs.PathError))
	}
	_, err = file.ReadRegular(filepath.Join(dir, "none"), 5)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestWriteNewOverwritesNothing(t *testing.T) {
	at := filepath.Join(t.TempDir(), "x")
	require.NoError(t, file.WriteNew(at, []byte("mine"), 0o644))
	require.ErrorIs(t, file.WriteNew(at, []byte("yours"), 0o644), fs.ErrExist)
	data, err := os.ReadFile(at)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
}

func TestInDirTakesBackWhatItMade(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	require.ErrorIs(t, file.InDir(deep, func() error {
		require.DirExists(t, deep)
		return errStopped
	}), errStopped)
	require.Empty(t, names(t, dir))
	require.NoError(t, file.InDir(deep, func() error { return nil }))
	require.ErrorIs(t, file.InDir(deep, func() error { return errStopped }), errStopped)
	require.DirExists(t, deep)
}

func TestNewOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "x")
	say := func(text string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
	}
	require.NoError(t, file.New(at, 0o600, say("mine")))
	require.ErrorIs(t, file.New(at, 0o600, say("yours")), fs.ErrExist)
	require.ErrorIs(t, file.New(filepath.Join(dir, "late"), 0o600, func(io.Writer) error {
		return file.Put(filepath.Join(dir, "late"), []byte("first"), 0o600)
	}), fs.ErrExist, "it came while the other was written")
	require.NoError(t, os.Symlink("nothing", filepath.Join(dir, "link")))
	require.ErrorIs(t, file.New(filepath.Join(dir, "link"), 0o600, say("yours")), fs.ErrExist)
	require.NoError(t, file.New(os.DevNull, 0o600, say("to nobody")))
	require.Equal(t, []string{"late", "link", "x"}, names(t, dir))
	data, err := file.ReadSecret(at, 10)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
}
