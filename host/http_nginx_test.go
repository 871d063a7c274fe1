package host

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// nginx starts one on a loopback port and returns its base URL, its address and
// the directory that it serves. It inherits the listener, so that requests wait
// for it in the backlog until it is there.
func nginx(t *testing.T) (base, addr, dir string) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // not on the path of users
		if _, err := os.Stat(program); err != nil {
			t.Skip("nginx is not installed: apt-get install nginx-light")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	socket, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer func() { require.NoError(t, socket.Close()) }()
	addr, dir = l.Addr().String(), t.TempDir()
	config, err := os.ReadFile("testdata/http/nginx.conf")
	require.NoError(t, err)
	config = bytes.ReplaceAll(config, []byte("ADDRESS"), []byte(addr))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), config, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "files"), 0o700))

	var log bytes.Buffer
	cmd := exec.Command(program, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	cmd.Dir, cmd.Stderr = dir, &log
	cmd.Env = append(os.Environ(), "NGINX=3;") // the first of ExtraFiles
	cmd.ExtraFiles = []*os.File{socket}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM)) // it ends its worker
		require.NoError(t, cmd.Wait())
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + addr, addr, dir
}

func TestHTTPAgainstNginx(t *testing.T) {
	base, addr, dir := nginx(t)
	file := filepath.Join(dir, "files", "note.txt")
	require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	trial := func(path, method string) *httpTrial {
		return &httpTrial{
			config: m{"url": base + path, "method": method, "max_redirects": 1, "secret_headers": m{"Authorization": "secret://T"}},
			open:   []string{addr}, secrets: map[string]string{"secret://T": "s3cr3t"},
		}
	}
	r, payload := trial("/files/note.txt", "GET").get(t)
	require.Equal(t, receipt.StatusOK, r.Status, payload)
	require.Equal(t, "one", payload["body"])
	require.NotEmpty(t, payload["headers"].(m)["etag"])

	_, payload = trial("/json", "POST").get(t)
	require.Equal(t, m{"method": "POST", "key": "worldkernel:town:abc", "auth": "s3cr3t"}, payload["json"])

	moved := trial("/moved", "GET")
	_, payload = moved.get(t)
	require.Equal(t, "path_not_allowed", payload["code"], "config.url says where")
	moved.cap = manifest.Cap{Type: manifest.CapHTTP, Params: manifest.CapParams{
		Schemes: []string{"http"}, Hosts: []string{"127.0.0.1"}, Ports: []uint64{netPort(addr)}, Methods: []string{"GET"}, Paths: []string{"/"},
	}}
	_, payload = moved.get(t)
	require.Equal(t, "one", payload["body"])
	_, payload = trial("/metadata", "GET").get(t)
	require.Equal(t, "host_not_allowed", payload["code"])

	busy := trial("/busy", "GET")
	busy.idempotent = true
	r, payload = busy.get(t)
	require.Equal(t, receipt.StatusOK, r.Status, payload)
	r, payload = busy.get(t) // within the minute that nginx wants between two
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class, payload)
	require.Equal(t, int64(429), payload["status"])
	require.Equal(t, 7*time.Second, r.RetryAfter)
}

func TestHTTPConfirmAgainstNginx(t *testing.T) {
	base, addr, dir := nginx(t)
	file := filepath.Join(dir, "files", "note.txt")
	x := &httpTrial{config: m{"url": base + "/files/note.txt", "method": "PUT"}, params: m{"body": "one"}, open: []string{addr}}
	made, payload := x.get(t)
	require.Equal(t, receipt.StatusOK, made.Status, payload)
	require.Equal(t, int64(201), payload["status"])
	require.Equal(t, base+"/files/note.txt", made.StateChange.Resource)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "one", string(written))
	head, err := x.perform(t.Context(), t)
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, head.Status)

	// nginx gives no tag with the answer to PUT: take what it gives with GET.
	read := &httpTrial{config: m{"url": base + "/files/note.txt"}, open: []string{addr}}
	_, payload = read.get(t)
	headers := payload["headers"].(m)
	tagged := receipt.StateChange{Resource: made.StateChange.Resource, ETag: headers["etag"].(string)}
	dated := receipt.StateChange{Resource: made.StateChange.Resource, Version: headers["last-modified"].(string)}
	gone := receipt.StateChange{Resource: made.StateChange.Resource, Version: httpGone}

	v := x.verifier(t, m{})
	confirm := func(change *receipt.StateChange, want receipt.FoundVerdict) string {
		t.Helper()
		found, err := v.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: change})
		require.NoError(t, err)
		require.Equal(t, want, found.Verdict, found.Reason)
		return found.Reason
	}
	for _, change := range []*receipt.StateChange{made.StateChange, &tagged, &dated} {
		confirm(change, receipt.Happened)
	}
	confirm(&gone, receipt.NotHappened)

	require.NoError(t, os.WriteFile(file, []byte("other"), 0o600))
	later := time.Unix(2_000_000_000, 0)
	require.NoError(t, os.Chtimes(file, later, later))
	reason := confirm(&tagged, receipt.NotHappened)
	require.Contains(t, reason, tagged.ETag)
	require.Equal(t, 2, strings.Count(reason, `"`)/2, "both tags: %s", reason)
	confirm(&dated, receipt.NotHappened)
	confirm(made.StateChange, receipt.Happened) // it is there, and the receipt says no more

	x = &httpTrial{config: m{"url": base + "/files/note.txt", "method": "DELETE"}, open: []string{addr}}
	deleted, payload := x.get(t)
	require.Equal(t, receipt.StatusOK, deleted.Status, payload)
	confirm(deleted.StateChange, receipt.Happened)
	confirm(&tagged, receipt.NotHappened)
}

func TestHTTPVerifyAgainstNginx(t *testing.T) {
	base, addr, _ := nginx(t)
	x := &httpTrial{config: m{"url": base + "/refunds", "method": "POST"}, open: []string{addr}}
	v := x.verifier(t, m{})
	found, err := v.Verify(t.Context(), Call{External: "worldkernel:town:known"})
	require.NoError(t, err)
	require.Equal(t, receipt.Found{Verdict: receipt.Happened, Payload: httpCBOR(t, `{"id": "r-1"}`), Reason: found.Reason}, found)
	found, err = v.Verify(t.Context(), Call{External: "worldkernel:town:other"})
	require.NoError(t, err)
	require.Equal(t, receipt.NotHappened, found.Verdict, found.Reason)
}
