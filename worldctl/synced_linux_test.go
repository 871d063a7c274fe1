package worldctl

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsDoneIsOnTheDisk looks at what the program asks the system for: when a
// command has ended, every file that it wrote is synced, and every name that it made, or
// gave to another file, is, by its directory. What it renames is complete and synced
// before. Below store and anchor the tests of journal/store know more: they crash.
func TestWhatIsDoneIsOnTheDisk(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.CopyFS(at("w"), os.DirFS("testdata/worlds/disk")))
	in := "-w " + at("w")
	for _, line := range []string{
		"init " + at("w"),
		"init " + at("new/town") + " --template town",
		in + ` effect disk.write {"op":"write","path":"a","data":"1"} --cap desk --reason why`,
		in + ` effect disk.write {"op":"append","path":"b","data":"1"} --cap desk --reason why`,
		in + ` effect disk.write {"op":"append","path":"b","data":"2"} --cap desk --reason why`,
		in + " keys rotate",
		"keys new --approver " + at("approver"),
		in + " snapshot create one",
		in + " snapshot save one " + at("one.snap"),
		in + " export " + at("w.bundle") + " --format bundle",
		in + " export " + at("w.jsonl") + " --format jsonl",
		"token new op --scope read --file " + at("tokens"),
		in + " fork " + at("fork") + " --effects recorded",
		in + " backup " + at("copies/backup"),
		"restore " + at("copies/backup") + " -w " + at("again"),
		"sweep " + at("w/sweep.yaml") + " --out " + at("made/with/results") + " --live disk.write",
		"import journal " + at("w.bundle") + " -w " + at("imported"),
	} {
		require.Empty(t, traced(t, dir, dir, strings.Fields(line)...), line)
	}
	require.NoError(t, os.Mkdir(at("here"), 0o755))
	require.Empty(t, traced(t, dir, at("here"), "restore", at("copies/backup"), "-w", "."), "into the working directory")
}

// traced runs the program and returns what of dir it has left unsynced.
func traced(t *testing.T, dir, wd string, args ...string) []string {
	t.Helper()
	d := disk{dir: dir, wd: wd, known: make(map[string]bool), unsynced: make(map[string]bool)}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		d.known[path] = true
		return err
	}))
	program, err := exec.LookPath("worldctl")
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "log")
	calls := "trace=openat,write,pwrite64,copy_file_range,sendfile,splice,fsync,fdatasync,link,linkat,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir"
	cmd := exec.Command("strace", append([]string{"-f", "-y", "-s", "0", "-o", log, "-e", calls, program}, args...)...)
	cmd.Dir = wd
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("ptrace")) {
		t.Skipf("strace may not trace here: %s", out)
	}
	require.NoError(t, err, "%v: %s", args, out)
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	begun := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		pid, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if first, ok := strings.CutSuffix(call, " <unfinished ...>"); ok {
			begun[pid] = first
			continue
		}
		if _, rest, ok := strings.Cut(call, " resumed>"); ok {
			call = begun[pid] + rest
		}
		d.see(call)
	}
	return d.faults()
}

// disk is what is not synced below a directory: the content of a file, by its path, and
// its name, by its path and a slash.
type disk struct {
	dir, wd  string
	known    map[string]bool // names that are there
	unsynced map[string]bool
	early    []string // what was renamed before it was synced
}

var (
	systemCall = regexp.MustCompile(`^(\w+)\((.*)\) += \d+(?:<(.*)>)?`)
	pathNames  = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"`)
	opened     = regexp.MustCompile(`\d+<(/[^>]*)>`)
)

// see takes a system call, if it succeeded.
func (d *disk) see(line string) {
	m := systemCall.FindStringSubmatch(line)
	if m == nil {
		return
	}
	name, args, result := m[1], m[2], m[3]
	var at []string // the file that is open
	for _, f := range opened.FindAllStringSubmatch(args, -1) {
		at = append(at, f[1])
	}
	switch name {
	case "openat":
		if strings.Contains(args, "O_CREAT") && !d.known[result] {
			d.add(result, result+"/")
			d.known[result] = true
		}
	case "mkdir", "mkdirat":
		d.add(d.paths(args)[0] + "/")
	case "unlink", "unlinkat", "rmdir":
		d.drop(d.paths(args)[0])
		delete(d.known, d.paths(args)[0])
	case "rename", "renameat", "renameat2":
		d.rename(d.paths(args))
	case "link", "linkat":
		paths := d.paths(args)
		d.complete(paths[0])
		d.add(paths[1] + "/")
		d.known[paths[1]] = true
	case "fsync", "fdatasync":
		delete(d.unsynced, at[0])
		maps.DeleteFunc(d.unsynced, func(path string, _ bool) bool {
			return strings.HasSuffix(path, "/") && filepath.Dir(strings.TrimSuffix(path, "/")) == at[0]
		})
	case "copy_file_range", "sendfile", "splice":
		d.add(at[1:]...)
	default:
		d.add(at...)
	}
}

// paths returns the names in a call, in full.
func (d *disk) paths(args string) []string {
	var paths []string
	for _, m := range pathNames.FindAllStringSubmatch(args, -1) {
		path := m[2]
		if !filepath.IsAbs(path) {
			path = filepath.Join(cmp.Or(m[1], d.wd), path)
		}
		paths = append(paths, filepath.Clean(path))
	}
	return paths
}

// elsewhere are what other tests look after, or nobody needs after a crash.
var elsewhere = regexp.MustCompile(`/(store|store\.new|store\.copy|anchor|lock|owner\.sock)(/|$)`)

func (d *disk) add(paths ...string) {
	for _, path := range paths {
		if strings.HasPrefix(path, d.dir+"/") && !elsewhere.MatchString(path) {
			d.unsynced[path] = true
		}
	}
}

// below returns what is not synced of a path and of what is below it.
func (d *disk) below(path string) []string {
	var all []string
	for _, x := range slices.Sorted(maps.Keys(d.unsynced)) {
		if x == path || strings.HasPrefix(x, path+"/") {
			all = append(all, x)
		}
	}
	return all
}

func (d *disk) drop(path string) {
	for _, x := range d.below(path) {
		delete(d.unsynced, x)
	}
}

// complete notes what of a path is not synced that gets another name.
func (d *disk) complete(path string) {
	early := slices.DeleteFunc(d.below(path), func(x string) bool { return x == path+"/" })
	if len(early) > 0 {
		d.early = append(d.early, fmt.Sprintf("%s is renamed before %s is synced", path, early))
	}
}

func (d *disk) rename(paths []string) {
	from, to := paths[0], paths[1]
	d.complete(from)
	d.drop(from)
	d.drop(to)
	for _, path := range slices.Sorted(maps.Keys(d.known)) {
		if rest, ok := strings.CutPrefix(path+"/", from+"/"); ok {
			delete(d.known, path)
			d.known[filepath.Join(to, rest)] = true
		}
	}
	d.add(to + "/")
}

func (d *disk) faults() []string {
	return append(d.early, slices.Sorted(maps.Keys(d.unsynced))...)
}
