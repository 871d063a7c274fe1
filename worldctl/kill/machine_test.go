package kill

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const (
	machineEnv = "WORLDKERNEL_TEST_MACHINE" // marks its processes
	shutdown   = 0x8004587d                 // FS_IOC_SHUTDOWN
	unsynced   = uint32(2)                  // is lost
	fullFor    = 3 * time.Second
)

// machine is what an agent and its world run on. With MACHINE=1 it is one of Linux, for root: its disk is a file system of its
// own, of which a power cut leaves what was synced; and its clock is that which a program sees that tools/agents has built, and an agent
// below libfaketime. Else it is a directory.
type machine struct {
	t     *testing.T
	base  string // of what is not on it
	dir   string // of its disk
	image string
	clock string
	whole bool // it is more than a directory

	mounted bool
	by      map[string]int // what has struck, by its name
}

func newMachine(t *testing.T, dir string) *machine {
	m := &machine{t: t, base: dir, dir: filepath.Join(dir, "machine"), image: filepath.Join(dir, "disk"), clock: filepath.Join(dir, "clock"), by: make(map[string]int)}
	m.whole = os.Getenv("MACHINE") != ""
	require.NoError(t, os.MkdirAll(m.dir, 0o700))
	m.set(0)
	if m.whole {
		m.run("truncate", "-s", "96M", m.image)
		m.run("mkfs.ext4", "-q", "-m", "0", m.image)
		t.Cleanup(m.off)
		m.mount()
	}
	return m
}

func (m *machine) run(name string, args ...string) {
	said, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(m.t, err, "%s %s: %s", name, args, said)
}

// command is one that runs on the machine.
func (m *machine) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), machineEnv+"="+m.dir, "FAKETIME_TIMESTAMP_FILE="+m.clock, "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_CACHE_DURATION=1")
	if lib := os.Getenv("CLOCK"); lib != "" {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+lib)
	}
	return cmd
}

// off ends the machine's processes, and takes its disk away, without what was not synced. Nobody is left who could be told by a
// sync that is under way then that it has succeeded.
func (m *machine) off() {
	begun := time.Now()
	for m.mounted && m.kill(func([]string) bool { return true }) > 0 {
		require.Less(m.t, time.Since(begun), patience, "processes do not end")
		<-time.After(time.Millisecond) // may be late: the system ends them
	}
	if m.mounted {
		m.shutdown()
	}
	for m.mounted {
		said, err := exec.Command("umount", m.dir).CombinedOutput()
		m.mounted = err != nil
		require.Less(m.t, time.Since(begun), patience, "it is in use: %s", said)
	}
}

// shutdown has the file system forget what was not synced.
func (m *machine) shutdown() {
	disk, err := os.Open(m.dir)
	require.NoError(m.t, err)
	flags := unsynced
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, disk.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))) //nolint:gosec // no package has it
	require.Zero(m.t, errno, "%v", errno)
	require.NoError(m.t, disk.Close())
}

func (m *machine) mount() {
	m.run("mount", "-o", "loop", m.image, m.dir)
	m.mounted = true
}

// kill kills those of the machine's processes whose command line is so, and returns how many it found.
func (m *machine) kill(is func(args []string) bool) (found int) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(m.t, err)
	for _, file := range all {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(machineEnv+"="+m.dir+"\x00")) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		var args []string
		for arg := range bytes.SplitSeq(line, []byte{0}) {
			args = append(args, string(arg))
		}
		if err == nil && is(args) {
			_ = syscall.Kill(number(filepath.Base(filepath.Dir(file))), syscall.SIGKILL)
			found++
		}
	}
	return found
}

// strike does something to the machine. It reports whether it did, and whether what runs there goes on.
func (m *machine) strike(rng *rand.Rand) (struck, goesOn bool) {
	if !m.whole {
		return false, false
	}
	switch rng.IntN(6) {
	case 0, 1:
		m.by["power cut"]++
		m.off()
		m.mount()
		return true, false
	case 2:
		m.by["disk full"]++
		m.fill(time.Duration(rng.Int64N(int64(fullFor))))
	case 3:
		m.by["clock jump"]++
		m.set([]int{-400 * 86400, -86400, -3600, -5, 5, 3600, 86400, 400 * 86400}[rng.IntN(8)])
	default:
		return false, false
	}
	return true, true
}

// fill fills the disk for a while.
func (m *machine) fill(span time.Duration) {
	ballast := filepath.Join(m.dir, "ballast")
	f, err := os.Create(ballast)
	require.NoError(m.t, err)
	for piece := 1 << 20; piece > 0; {
		if _, err := f.Write(make([]byte, piece)); err != nil {
			piece /= 2
		}
	}
	_ = f.Close()      // it is full
	<-time.After(span) // may be late: it is full for some time
	require.NoError(m.t, os.Remove(ballast))
}

// set sets the clock, by so many seconds from the true time.
func (m *machine) set(by int) {
	require.NoError(m.t, os.WriteFile(m.clock+".new", fmt.Appendf(nil, "%+d\n", by), 0o600))
	require.NoError(m.t, os.Rename(m.clock+".new", m.clock))
}

// children returns the processes that a process has begun.
func children(pid int) (all []int) {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output() // it fails where there are none
	for child := range bytes.FieldsSeq(out) {
		all = append(all, number(string(child)))
	}
	return all
}
