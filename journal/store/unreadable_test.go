package store

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMissingFileIsDamage(t *testing.T) {
	mem, _ := aWorld(t)
	refused := 0
	for _, file := range filesOf(t, mem, testDir+"/store") {
		files := clone(mem)
		require.NoError(t, files.Remove(file))
		s, err := Open(testDir, testOptions(files))
		if err == nil {
			require.NoError(t, s.Close())
			continue
		}
		if !errors.Is(err, ErrBehindAnchor) { // the log was all there was
			damage := (*DamageError)(nil)
			require.ErrorAs(t, err, &damage, file)
		}
		refused++
	}
	require.Positive(t, refused)
}

func TestDamageIsToldInOneLine(t *testing.T) {
	err := &DamageError{What: "x", Err: errors.New("torn\n<corruption detail carrier>\nstack")}
	require.Equal(t, "x is damaged: torn", err.Error())
}

func TestAnOwnedWorldIsNotRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	s, err := Create(dir, Options{})
	require.NoError(t, err)
	locked := (*LockedError)(nil)
	require.ErrorAs(t, Remove(dir), &locked)
	_, err = os.Stat(path.Join(dir, storeName))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, Remove(dir))
	require.NoDirExists(t, dir)
}
