package gateway_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/gateway"
)

const suiteVersion = "0.2.0-alpha.12" // of @modelcontextprotocol/conformance

// suite is the conformance suite of MCP, and the server and the client of the Go SDK that it is run on.
type suite struct {
	*testing.T
	npm, server, client string
}

// newSuite fetches the suite once into the user's cache, with a Node.js that it runs on.
func newSuite(t *testing.T) *suite {
	if os.Getenv("NIGHTLY") == "" {
		t.Skip("it fetches from npm, and takes half a minute: NIGHTLY=1")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm to fetch the suite with")
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	must := func(name string, args ...string) {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	dir, built := filepath.Join(cache, "worldkernel-test", "conformance-"+suiteVersion), t.TempDir()
	s := &suite{t, filepath.Join(dir, "node_modules", ".bin"), filepath.Join(built, "everything-server"), filepath.Join(built, "everything-client")}
	if _, err := os.Stat(filepath.Join(s.npm, "conformance")); err != nil {
		must("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "@modelcontextprotocol/conformance@"+suiteVersion, "node@22.23.3")
	}
	const of = "github.com/modelcontextprotocol/go-sdk/conformance/everything-"
	must("go", "build", "-o", built+"/", of+"server", of+"client")
	return s
}

// serve has the server of the SDK serve an era.
func (s *suite) serve(era string) string {
	free := httptest.NewServer(nil)
	free.Close()
	address := free.Listener.Addr().String()
	cmd := exec.CommandContext(s.Context(), s.server, "-http", address, fmt.Sprint("-stateless=", era == "2026-07-28"))
	require.NoError(s, cmd.Start())
	s.Cleanup(func() { _ = cmd.Wait() })
	require.Eventually(s, func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	}, time.Minute, 50*time.Millisecond)
	return "http://" + address + "/mcp"
}

// run runs the scenarios of an era in a role, and returns the worst that it says of each check, and SUCCESS of a scenario in which one
// passes. Those below auth are logins.
func (s *suite) run(role, era string, args ...string) map[string]string {
	out, all := s.TempDir(), make(map[string]string)
	cmd := exec.CommandContext(s.Context(), filepath.Join(s.npm, "conformance"), append([]string{role, "--requirements", era, "-o", out}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+s.npm+string(os.PathListSeparator)+os.Getenv("PATH"))
	_ = cmd.Run() // it fails where a scenario does
	files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	for _, file := range files {
		scenario := regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*`).ReplaceAllString(filepath.Base(filepath.Dir(file)), "")
		var checks []struct{ ID, Status string }
		data, _ := os.ReadFile(file)
		require.NoError(s, json.Unmarshal(data, &checks))
		for _, c := range checks {
			switch key := scenario + " " + c.ID; {
			case scenario == "server-server-sse-polling", c.ID == "server-sse-streams-functional":
			case c.Status == "SUCCESS":
				all[key], all[scenario] = cmp.Or(all[key], c.Status), c.Status
			case c.Status == "FAILURE" || c.Status == "WARNING":
				all[key] = c.Status
			}
		}
	}
	return all
}

// compare requires that each check that passes direct passes through, that nothing is worse, and that at least so many scenarios pass.
func (s *suite) compare(direct, through map[string]string, least int) {
	for key, said := range direct { // order cannot show: each for itself
		if said != "SUCCESS" {
			continue
		}
		if !strings.Contains(key, " ") {
			least--
		}
		require.Equal(s, said, through[key], key)
	}
	require.LessOrEqual(s, least, 0, "too few scenarios have run")
	for key, said := range through { // order cannot show: each for itself
		require.True(s, said == "SUCCESS" || direct[key] == "FAILURE" || direct[key] == "WARNING", "%s: %s, and direct %s", key, said, direct[key])
	}
}

// What passes direct passes through the gateway: to a server over HTTP, to one of several over HTTP, also for a client that listens to
// no stream, and to one of several that is a program. Left out are logins, since a server that asks for one is not put behind the gateway
// (docs/gateway.md), several servers without sessions, which are served with sessions alone over HTTP, and server-sse-polling, in which
// the server of the SDK loses the result: direct nobody hears more of it, and here it is in doubt, which counts as worse; and that streams
// are streams, since several servers may be answered in JSON.
func TestConformance(t *testing.T) {
	direct := newSuite(t)
	for era, ways := range map[string][]string{"2025-11-25": {"web", "group", "silent", "program"}, "2026-07-28": {"web"}} {
		server, client := direct.run("server", era, "--url", direct.serve(era)), direct.run("client", era, "--command", direct.client)
		for _, way := range ways {
			t.Run(era+"/"+way, func(t *testing.T) {
				s, r := &suite{t, direct.npm, direct.server, direct.client}, newStage(t).start()
				base := r.url("mcp", "/")
				if way != "web" {
					alone := httptest.NewServer(s.alone(r, way))
					t.Cleanup(alone.Close)
					base = alone.URL + "/"
				}
				s.compare(server, s.run("server", era, "--url", base+"s/"+s.serve(era)), 32)
				script := filepath.Join(t.TempDir(), "client") // each server has a name of its own, by its port
				require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nport=${1##*:}\nexec %s %ss${port%%%%/*}/$1\n", s.client, base), 0o700))
				if way != "program" {
					s.compare(client, s.run("client", era, "--command", script), 5)
				}
			})
		}
	}
}

// alone serves a server of several as if it were alone: the suite knows its tools by their own names. A path is NAME/ADDRESS.
func (s *suite) alone(r *run, way string) http.HandlerFunc {
	var sites sync.Map
	asked := regexp.MustCompile(`("(?:tools/call|prompts/get)","params":{(?:"_meta":{[^}]*},)?(?:"arguments":{[^}]*},)?"name":"|"ref/prompt","name":")`)
	return func(w http.ResponseWriter, q *http.Request) {
		name, where, _ := strings.Cut(q.URL.Path[1:], "/")
		site, _ := sites.LoadOrStore(name, sync.OnceValue(func() *url.URL {
			of := gateway.GroupServer{Name: name, URL: where}
			if way == "program" {
				of.Command = exec.Command(s.server)
			}
			at, _ := url.Parse(r.groupSite(of))
			return at
		}))
		if way == "silent" && q.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(q.Body)
		body = asked.ReplaceAll(body, []byte("${1}"+name+"__"))
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(to *httputil.ProxyRequest) {
			to.Out.URL, to.Out.Host = site.(func() *url.URL)(), q.Host
			to.Out.Body, to.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}, ModifyResponse: func(resp *http.Response) (err error) {
			if resp.Header.Get("Content-Type") == "application/json" { // a stream lists nothing
				said, failed := io.ReadAll(resp.Body)
				said, err = bytes.ReplaceAll(said, []byte(`"name":"`+name+"__"), []byte(`"name":"`)), failed
				resp.Body = io.NopCloser(bytes.NewReader(said))
				resp.Header.Del("Content-Length")
			}
			return err
		}}).ServeHTTP(w, q)
	}
}
