package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// cage is a trap with a root in it. What is not below the root, and what is the
// world's own, holds a canary: in its files, in their names, in their hashes.
type cage struct {
	a         *attack.Attempt
	base, dir string
	root      string   // as config has it
	guarded   []string // directories that nothing may get at
	before    canon.Hash
}

const canary = "OUTSIDE-CANARY\n"

// roots are what config may have for a root, with what is then inside, from base.
var roots = map[string]string{"out": "w/out", "out/a": "w/out/a", "./out//": "w/out", ".": "w", "BASE": ".", "BASE/w/out": "w/out"}

// newCage makes a trap, and gives it one of the roots.
func newCage(t *testing.T, a *attack.Attempt, base string) *cage {
	c := &cage{a: a, base: base, dir: trapIn(t, base)}
	name := attack.Pick(a, "out", "out", "out/a", "./out//", ".", ".", "BASE", "BASE/w/out")
	c.root = strings.Replace(name, "BASE", base, 1)
	c.guarded = []string{"w/.world", "w/.worker", "other/.world"}
	switch roots[name] {
	case ".":
		c.free(t, "outside/f", "outside/d/f", "w/f")
	case "w":
		c.guarded = append(c.guarded, "outside", "other")
		c.free(t, "w/f")
	default:
		c.guarded = append(c.guarded, "outside", "other", "w/CANARY-here")
		require.NoError(t, os.Mkdir(filepath.Join(base, "w/CANARY-here"), 0o755))
	}
	for _, g := range c.guarded {
		require.NoError(t, os.WriteFile(filepath.Join(base, g, "CANARY-name"), []byte(canary), 0o600))
	}
	c.before = c.tree(t)
	return c
}

// free takes the canary from what is inside.
func (c *cage) free(t *testing.T, names ...string) {
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(c.base, name), []byte("inside\n"), 0o644))
	}
}

// tree is what the guarded directories hold.
func (c *cage) tree(t *testing.T) canon.Hash {
	var all []byte
	for _, g := range c.guarded {
		h := treeOf(t, filepath.Join(c.base, g))
		all = append(all, h[:]...)
	}
	return canon.Sum(all)
}

// hostilePath draws a path below a root, or one that is not.
func (c *cage) hostilePath() string {
	a := c.a
	if a.Chance(3) { // through a link, to what is there
		link := attack.Pick(a, "link-world", "link-store", "a-world", "out/link-world", "link-dir", "link-dir-abs", "link-up", "a/link-deep", "chain-dir", "link-root"+c.base+"/outside", "link-proc"+c.base+"/outside", "link-up/.world", "link-dot/link-dir", ".world", ".WORLD", ".worker", "other/.world", "../outside", "../.world", "a/../../outside")
		if c.root == c.base {
			link = "w/" + link
		}
		return link + "/" + attack.Pick(a, "f", "CANARY-name", "keyring", "new", "name", "store/f", "d/f")
	}
	var p string
	for i := range 1 + a.IntN(4) {
		if i > 0 {
			p += attack.Pick(a, "/", "/", "/", "/", "/", "/", "//", "/./", "\\", "%2f", "%5C", "／", "/ ", "∕", "\x00/")
		}
		p += attack.Pick(a, "f", "a", "b", "new", "..", "..", "..", ".", "out", "w", "link-file", "link-abs", "link-near", "link-dir", "link-dir-abs", "link-up", "link-deep", "chain",
			"chain2", "chain-dir", "dangling", "dangling-near", "loop", "loop-a", "link-root", "link-proc", "link-fd", "link-dot", "link-in", "link-in-dir", "link-world", "link-null",
			"link-key", "link-store", "a-world", "fifo", "null", ".world", ".World", ".WORLD", ".worlD ", ".world.", ".wörld", ".ｗorld", ".worl\u212b", ".world\u200b", ".world::$DATA", ".worker", ".Worker",
			"keyring", "store", "name", "CANARY-name", "CANARY-here", "outside", "other", "d", "...", ".. ", "..\u200b", "%2e%2e", "%252e%252e", "．．", "..;", "~", "~root", "$HOME", "proc", "self", "root", "etc", "passwd",
			"con", "nul.txt", "C:", "f:x", "-", "*", "?", "\u202e", strings.Repeat("n", 256), strings.Repeat("a/", 300)+"f")
	}
	switch a.IntN(12) {
	case 0:
		p = "/" + p
	case 1:
		p = c.base + "/" + p
	case 2:
		p = "file://" + c.base + "/outside/f"
	case 3:
		p += attack.Pick(a, "/", "/.", "/..", "\x00", "\n", " ", ".", "\\")
	case 4:
		p = strings.Repeat("../", a.IntN(20)) + p
	}
	return p
}

// call is one operation; what it reveals is returned.
func (c *cage) call(t *testing.T, p string) string {
	config := map[string]any{"root": c.root}
	params := map[string]any{"op": attack.Pick(c.a, "read", "read", "write", "append", "list"), "path": p}
	if strings.Contains(p, "CANARY") || strings.Contains(p, "keyring") {
		params["op"] = "read" // or there would be one inside
	}
	if op := params["op"]; op == "write" || op == "append" || c.a.Chance(20) {
		params["data"] = "changed"
	}
	switch c.a.IntN(15) {
	case 0:
		params["root"] = c.base
	case 1:
		params["op"] = attack.Pick(c.a, "READ", "delete", "", "read ", "link", "exec")
	case 2, 3:
		config["op"] = attack.Pick(c.a, "read", "write", "append", "list")
	}
	setup := Setup{Kind: "f", Dir: c.dir, Config: fileCBOR(t, config)}
	call := liveCall(t, "null", 0)
	call.Permit.Params = fileCBOR(t, params)
	if c.a.Chance(8) { // as a verifier
		return c.verified(t, setup, call, p)
	}
	adapter, err := newFile(setup)
	require.NoError(t, err)
	r, err := adapter.Perform(context.Background(), call)
	if err != nil {
		return err.Error()
	}
	if op := config["op"]; op != nil && op != params["op"] && r.Status == receipt.StatusOK {
		c.a.Through("%q does %s, and config says %s", p, params["op"], op)
	}
	return payloadOf(t, r)
}

// verified has a file compared, which tells its hash where it is another.
func (c *cage) verified(t *testing.T, s Setup, call Call, p string) string {
	s.Effect.Config, s.Config = s.Config, nil
	v, err := newFileVerifier(s)
	require.NoError(t, err)
	resource := attack.Pick(c.a, p, c.root+"/"+p, filepath.Clean(c.root)+"/"+p)
	found, err := v.Confirm(context.Background(), call, &receipt.Receipt{StateChange: &receipt.StateChange{Resource: resource, Version: attack.Pick(c.a, "", "bytes 0-15", "bytes -9-99")}})
	if err != nil {
		return err.Error()
	}
	again, err := v.Verify(context.Background(), call)
	if err != nil {
		return err.Error()
	}
	if found.Verdict == receipt.Happened || found.Verdict == receipt.NotHappened {
		found.Reason = strings.ReplaceAll(found.Reason, c.base, "") // as the manifest or the receipt names it
	}
	return found.Reason + again.Reason
}

func fileCBOR(t *testing.T, fields map[string]any) receipt.Data {
	data, err := canon.Marshal(fields)
	require.NoError(t, err)
	return data
}

// judge says what was revealed, after a call.
func (c *cage) judge(told, p string) {
	hash := canon.Sum([]byte(canary)).String()
	for _, secret := range []string{"CANARY", hash, "keyring"} {
		if !strings.Contains(p, secret) && strings.Contains(told, secret) {
			c.a.Through("%q below %s tells %.300s", p, c.root, told)
		}
	}
	if !strings.HasPrefix(c.root, "/") && !strings.Contains(p, c.base) && strings.Contains(told, c.base) {
		c.a.Through("%q below %s tells where the world is: %.300s", p, c.root, told)
	}
}

// inCage has something done in a cage of its own, in memory where the system has
// such files: no disk is under attack.
func inCage(t *testing.T, a *attack.Attempt, do func(c *cage)) {
	shm := "/dev/shm"
	if _, err := os.Stat(shm); err != nil {
		shm = ""
	}
	base, err := os.MkdirTemp(shm, "cage") //nolint:usetesting // in memory, where it can be, and one for each attempt
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(base)) }()
	c := newCage(t, a, base)
	do(c)
	if c.tree(t) != c.before {
		a.Through("something has changed outside of %s", c.root)
	}
}

// TestAttackFile has a file effect read, write and list what is not below its root,
// by names.
func TestAttackFile(t *testing.T) {
	attack.Run(t, "file", func(a *attack.Attempt) {
		inCage(t, a, func(c *cage) {
			for range 4 {
				p := c.hostilePath()
				c.judge(c.call(t, p), p)
			}
		})
	})
}

// TestAttackFileRace has one do so while directories and files become symbolic links
// and are themselves again.
func TestAttackFileRace(t *testing.T) {
	attack.Run(t, "file race", func(a *attack.Attempt) {
		inCage(t, a, func(c *cage) {
			below := strings.Replace(filepath.Join(c.dir, c.root), c.dir+c.base, c.base, 1)
			prefix := ""
			if c.root == c.base {
				below, prefix = c.dir, "w/"
			}
			require.NoError(t, os.MkdirAll(filepath.Join(below, "a"), 0o755))
			for _, name := range []string{"a/f", "f"} {
				require.NoError(t, os.WriteFile(filepath.Join(below, name), []byte("inside\n"), 0o644))
			}
			pairs := map[string]string{"a": "evil-dir", "f": "evil-file"}
			to := attack.Pick(a, c.dir+"/.world", c.base+"/outside", c.dir+"/.worker", c.base+"/other/.world")
			if c.root == c.base && to == c.base+"/outside" {
				to = c.dir + "/.world"
			}
			require.NoError(t, os.WriteFile(filepath.Join(to, "f"), []byte(canary), 0o600))
			c.before = c.tree(t)
			if a.Chance(2) {
				rel, err := filepath.Rel(below, to)
				require.NoError(t, err)
				to = rel
			}
			require.NoError(t, os.Symlink(to, filepath.Join(below, "evil-dir")))
			require.NoError(t, os.Symlink(to+"/f", filepath.Join(below, "evil-file")))
			stop, stopped := make(chan struct{}), make(chan error, 1)
			go func() { stopped <- exchange(below, pairs, stop) }()
			for range 20 {
				p := prefix + attack.Pick(a, "a/f", "a/f", "f", "f", "a", "a/new", "a/CANARY-name", "a/keyring")
				c.judge(c.call(t, p), p)
			}
			close(stop)
			require.NoError(t, <-stopped)
		})
	})
}

// exchange exchanges the names of pairs in dir until stop is closed.
func exchange(dir string, pairs map[string]string, stop <-chan struct{}) error {
	for {
		for good, evil := range pairs {
			err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, good), unix.AT_FDCWD, filepath.Join(dir, evil), unix.RENAME_EXCHANGE)
			if err != nil {
				return fmt.Errorf("%s and %s: %w", good, evil, err)
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}
