package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/worldkernel/worldkernel/internal/fault"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/testrace"
)

// A test binary that finds one of these variables opens the world it names, and
// says how that went, or fills the disk with it.
const (
	openWorldEnv = "WORLDKERNEL_TEST_OPEN_WORLD"
	fillWorldEnv = "WORLDKERNEL_TEST_FILL_WORLD"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(openWorldEnv); dir != "" {
		s, err := Open(dir, testOptions(nil))
		locked := (*LockedError)(nil)
		switch {
		case errors.As(err, &locked):
			fmt.Print("locked: ", locked.Owner)
		case err != nil:
			fmt.Print(err)
		default:
			fmt.Print("opened")
			_ = s.Close()
		}
		os.Exit(0)
	}
	if dir := os.Getenv(fillWorldEnv); dir != "" {
		fillWorld(dir)
	}
	_ = flag.Set("rapid.checks", strconv.Itoa(testrace.Cases(int(100/fault.Stride(5)))))
	os.Exit(m.Run())
}

// fillWorld appends to the world in dir until the process ends, and says after
// each batch what was acknowledged.
func fillWorld(dir string) {
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	noise := rand.NewChaCha8(s.Head().Root)
	text := make([]byte, 256<<10) // nothing makes this shorter
	for w := resume(s); ; {
		_, _ = noise.Read(text) // which never fails
		p, err := s.Append(w.batch(string(text)))
		if err == nil {
			err = p.Wait()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(w.head.ID)
	}
}

func openInAnotherProcess(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), openWorldEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	return string(out)
}

func TestAWorldHasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".world")
	s, err := Create(dir, testOptions(nil))
	require.NoError(t, err)
	owner := fmt.Sprintf("pid %d on ", os.Getpid())

	t.Chdir(filepath.Dir(dir))
	for _, spelling := range []string{dir, dir + "/.", ".world"} {
		_, err = Open(spelling, testOptions(nil))
		locked := (*LockedError)(nil)
		require.ErrorAs(t, err, &locked)
		require.Contains(t, locked.Owner, owner)
		_, err = Create(spelling, testOptions(nil))
		require.ErrorAs(t, err, &locked)
	}
	require.Contains(t, openInAnotherProcess(t, dir), "locked: "+owner)
	appendAll(t, s, (&writer{}).batch("a")) // the refused ones did no harm
	require.NoError(t, s.Close())

	require.Equal(t, "opened", openInAnotherProcess(t, dir))
	s, err = Open(dir, testOptions(nil))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestAWorldInMemoryHasOneOwner(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	_, err := Open(testDir, testOptions(mem))
	locked := (*LockedError)(nil)
	require.ErrorAs(t, err, &locked)
	require.NotEmpty(t, locked.Owner)
	require.NoError(t, s.Close())
	require.NoError(t, reopen(t, mem).Close())
}

func TestALockedWorldIsNotTouched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".world")
	s, err := Create(dir, testOptions(nil))
	require.NoError(t, err)
	s.db.TestOnlyWaitForCleaning() // what creating it has left goes in the background
	before := snapshotOf(t, dir)
	_, err = Open(dir, testOptions(nil))
	require.Error(t, err)
	require.Equal(t, before, snapshotOf(t, dir))
	require.NoError(t, s.Close())
}

func snapshotOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = string(content)
		return err
	}))
	return all
}

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
	err.Err = syscall.EMFILE
	require.Equal(t, "x cannot be read: too many open files", err.Error(), "nothing is wrong with it")
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

// TestFailedOpenLeavesNoCompactionBehind fails the last step of opening a store
// that Pebble would like to compact: Pebble frees then what a compaction uses.
func TestFailedOpenLeavesNoCompactionBehind(t *testing.T) {
	mem, w := aWorld(t)
	db := raw(t, mem)
	for range 8 {
		require.NoError(t, db.Set(recordKey(1), mustGet(t, db, recordKey(1)), nil))
		require.NoError(t, db.Flush())
	}
	require.NoError(t, db.Close())
	noOptions := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename && strings.Contains(op.Path, ".dbtmp") {
			return syscall.EIO
		}
		return nil
	}))
	for range 20 {
		_, err := Open(testDir, testOptions(noOptions))
		require.ErrorIs(t, err, syscall.EIO)
	}
	s := reopen(t, mem)
	require.Equal(t, w.head, s.Head())
	require.NoError(t, s.Close())
}

func mustGet(t testing.TB, db *pebble.DB, key []byte) []byte {
	t.Helper()
	value, closer, err := db.Get(key)
	require.NoError(t, err)
	value = bytes.Clone(value)
	require.NoError(t, closer.Close())
	return value
}

// TestManyShortSessions writes a small table in every session. Were compactions
// held back for good, the last sessions would wait for one forever.
func TestManyShortSessions(t *testing.T) {
	mem := memFS(t)
	require.NoError(t, create(t, mem).Close())
	w := &writer{}
	for range (&Store{}).pebbleOptions().L0StopWritesThreshold + 10 {
		s := reopen(t, mem)
		appendAll(t, s, w.batch("agent/a"))
		require.NoError(t, s.Close())
	}
	s := reopen(t, mem)
	require.Equal(t, w.head, s.Head())
	require.NoError(t, s.Close())
}
