package worldctl

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDiskUnderAWorldLosesNothing fills the file system that a world is on,
// while events come in.
func TestFullDiskUnderAWorldLosesNothing(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	ballast := filepath.Join(mount, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 8<<20), 0o600))
	dir := filepath.Join(mount, "w")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/desk")))
	worldctl(t, nil, "init", dir)
	line := `{"event": "ticket.opened", "data": {"customer": "ada", "amount": 1, "note": "` + strings.Repeat("n", 1000) + `"}}` + "\n"
	some := strings.Repeat(line, 1000)
	var acknowledged struct {
		Head struct {
			ID uint64 `json:"id"`
		} `json:"head"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, strings.NewReader(some), "-w", dir, "send", "-", "-o", "jsonl"), &acknowledged))

	code, _, said := outcomeOf(t, strings.NewReader(strings.Repeat(line, 100_000)), "-w", dir, "send", "-")
	require.Equal(t, exitFailed, code, said)
	require.Contains(t, said, "error: ")
	require.Contains(t, said, dir)
	require.Contains(t, said, "free space on")
	told := regexp.MustCompile(`after (\d+) accepted events?, durable: `).FindStringSubmatch(said)
	require.Len(t, told, 2, said)
	accepted, err := strconv.ParseUint(told[1], 10, 64)
	require.NoError(t, err)
	require.NotContains(t, said, "goroutine")

	require.NoError(t, os.Remove(ballast))
	var left struct {
		OK      bool   `json:"ok"`
		Records uint64 `json:"records"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "verify", "-o", "json"), &left))
	require.True(t, left.OK)
	require.GreaterOrEqual(t, left.Records, acknowledged.Head.ID+accepted, "what was said to be accepted is there")
	worldctl(t, strings.NewReader(line), "-w", dir, "send", "-")
}

// TestAnAgentEndsWithAWorldThatCannotGoOn fills the file system while the provider answers: nobody drives the world from
// then on, so the agent is ended, which would wait for ever for what is not recorded. With room again it is started again.
func TestAnAgentEndsWithAWorldThatCannotGoOn(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	ballast := filepath.Join(mount, "ballast")
	filled := make(chan error, 100)
	var room atomic.Bool
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !room.Load() {
			filled <- fill(ballast, 0)
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`+strings.Repeat("long ", 100_000)+`"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	}))
	t.Cleanup(provider.Close)
	t.Chdir(mount)
	t.Setenv("OPENAI_BASE_URL", provider.URL+"/v1")
	t.Setenv(askerEnv, "one "+filepath.Join(t.TempDir(), "answer"))
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), released(), []string{"agent", "run", "--name", "a", "--", self}, strings.NewReader(""), &stdout, &stderr)
	require.NotZero(t, code)
	require.NoError(t, <-filled)
	require.Contains(t, stderr.String(), "no space left on device")
	require.NotContains(t, stderr.String(), "goroutine")

	room.Store(true)
	require.NoError(t, os.Remove(ballast))
	stderr.Reset()
	code = run(t.Context(), released(), []string{"agent", "resume", "a"}, strings.NewReader(""), &stdout, &stderr)
	require.Zero(t, code, stderr.String())
}

// TestRedactOnAFullDiskSaysWhatIsLeftToDo redacts with less and less left of the file
// system that a world is on. It says what happened and what to do, and with room again
// the payload is as it was, or in no file where its redaction is on the record.
func TestRedactOnAFullDiskSaysWhatIsLeftToDo(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	whole := filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.CopyFS(whole, os.DirFS("testdata/worlds/desk")))
	rules, err := os.ReadFile(filepath.Join(whole, "world.yaml"))
	require.NoError(t, err)
	rules = bytes.Replace(rules, []byte("payload: 4KiB"), []byte("payload: 64KiB"), 1)
	require.NoError(t, os.WriteFile(filepath.Join(whole, "world.yaml"), rules, 0o600))
	worldctl(t, nil, "init", whole)
	worldctl(t, nil, "-w", whole, "send", "ticket.logged", `"`+strings.Repeat("fQ7zKp2LxV9mRt4WbN8sYc3", 300)+`"`)
	worldctl(t, nil, "-w", whole, "run")

	dir, ballast := filepath.Join(mount, "w"), filepath.Join(mount, "ballast")
	failed, left := 0, 0
	for room, code := 0, exitFailed; code != exitOK; room += 4 << 10 {
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
		require.NoError(t, os.Chmod(filepath.Join(dir, ".world", "keyring"), 0o600))
		leave(t, ballast, room)
		var said string
		code, _, said = outcomeOf(t, nil, "-w", dir, "redact", "#2", "--reason", "ada asked")
		require.NotContains(t, said, "goroutine")
		require.NoError(t, os.Remove(ballast))
		if code != exitOK {
			require.Equal(t, exitFailed, code, said)
			require.Contains(t, said, "error: ")
			require.Contains(t, said, "no space left on device")
			require.Contains(t, said, "hint: ")
			failed++
		}
		if redacted := redactedIn(t, dir); strings.Contains(said, "is on the record") {
			require.True(t, redacted, said)
			left++
		} else if code == exitOK {
			require.True(t, redacted)
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	require.Positive(t, failed)
	require.Positive(t, left)
}

// leave fills the file system of a file with it, up to so many bytes.
func leave(t *testing.T, ballast string, room int) {
	t.Helper()
	require.NoError(t, fill(ballast, room))
}

func fill(ballast string, room int) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(ballast), &fs); err != nil {
		return err
	}
	return os.WriteFile(ballast, make([]byte, max(0, int(fs.Bavail)*int(fs.Bsize)-room)), 0o600)
}

// redactedIn reports whether a world says that a payload is redacted. Then no file
// holds it.
func redactedIn(t *testing.T, dir string) bool {
	t.Helper()
	var v struct {
		OK       bool   `json:"ok"`
		Redacted uint64 `json:"redacted"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "verify", "-o", "json"), &v))
	require.True(t, v.OK)
	found, err := exec.Command("grep", "-rlF", "fQ7zKp2LxV9mRt4WbN8sYc3", dir).Output()
	if v.Redacted == 0 {
		require.NoError(t, err)
		return false
	}
	require.Empty(t, string(found))
	return true
}

// TestWhatIsMadeOnAFullDiskIsWholeOrNotThere has each verb that writes outside of a world do so with more and more
// left of the file system. Until there is enough it fails, says which file and why, and leaves nothing under the
// name; the world is as it was.
func TestWhatIsMadeOnAFullDiskIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	mount, dir := t.TempDir(), filepath.Join(t.TempDir(), "w")
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	beside := func(name string) string { return filepath.Join(filepath.Dir(dir), name) }
	out, ballast := filepath.Join(mount, "out"), filepath.Join(mount, "ballast")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/disk")))
	in := "-w " + dir + " "
	worldctl(t, nil, "init", dir)
	for _, line := range []string{"snapshot create one", "backup " + beside("backup"), "export " + beside("w.bundle")} {
		worldctl(t, nil, strings.Fields(in+line)...)
	}
	for _, line := range []string{
		in + "export " + out, in + "export --format jsonl " + out, in + "export --format html " + out, in + "audit --save " + out,
		in + "prove record 2 --to " + out, in + "checkpoint " + out, in + "snapshot save one " + out,
		in + "backup " + out, in + "fork " + out, in + "what-if --at one --seed 7 --keep " + out, "restore " + beside("backup") + " -w " + out,
		"init " + out, "init --template go " + out, "import journal " + beside("w.bundle") + " -w " + out,
		"token new op --scope read --file " + out, "keys new --approver " + out,
		"sweep " + filepath.Join(dir, "sweep.yaml") + " --live disk.write --out " + out,
	} {
		failed := 0
		for room, code := 0, exitFailed; code != exitOK; room += 4<<10 + room/4 {
			leave(t, ballast, room)
			var said string
			code, _, said = outcomeOf(t, nil, strings.Fields(line)...)
			if code == exitOK || code == exitFailed && strings.Contains(line, "what-if") && said == "" { // it differs
				break
			}
			failed++
			require.Regexp(t, "error: .*"+filepath.Join(mount, `\.?out`)+`(/|\.making|\.pub|: write|: no space)`, said, line)
			require.Contains(t, said, "no space left on device", line)
			require.Contains(t, said, "hint: make room on the disk", line)
			require.NotContains(t, said, "goroutine", line)
			if strings.HasPrefix(line, "sweep") { // whose runs are kept: each file is whole, or goes on
				continue
			}
			left, err := os.ReadDir(mount)
			require.NoError(t, err)
			require.Len(t, left, 1, "%s with %d bytes left %v", line, room, left)
		}
		require.Positive(t, failed, line)
		require.FileExists(t, ballast)
		entries, err := os.ReadDir(mount)
		require.NoError(t, err)
		for _, e := range entries {
			require.NoError(t, os.RemoveAll(filepath.Join(mount, e.Name())))
		}
	}
	worldctl(t, nil, strings.Fields(in+"verify")...)
}
