package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/serve/gateway"
)

// asServer has a process be the MCP server itself, and not stand before it.
const asServer = "server"

// toolResult answers a line of a client.
func toolResult(line []byte) []byte {
	var m struct{ ID json.RawMessage }
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`+"\n", m.ID)
}

// child is the other process of a client of tools: the server, or what stands before it, as worldctl mcp does.
func (b *gatewayBench) child(ctx context.Context, at string) error {
	if at != asServer {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		before := gateway.Bridge{URL: at, Server: exec.CommandContext(ctx, self, "gateway", "--child", asServer), Client: os.Stdin, Out: os.Stdout}
		return before.Run(ctx)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if _, err := os.Stdout.Write(toolResult(lines.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// stdio starts a child, and returns what calls a tool of it, and what ends it.
func (r *run) stdio(ctx context.Context, at string) (call func(n int), end func()) {
	self, err := os.Executable()
	r.must(err)
	cmd := exec.CommandContext(ctx, self, "gateway", "--child", at)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	r.must(err)
	out, err := cmd.StdoutPipe()
	r.must(err)
	r.must(cmd.Start())
	answers := bufio.NewReader(out)
	return func(n int) {
			_, err := io.WriteString(in, toolCall(n)+"\n")
			r.must(err)
			line, err := answers.ReadString('\n')
			r.must(err)
			r.done(line)
		}, func() {
			r.must(in.Close())
			r.must(cmd.Wait())
		}
}

func toolCall(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"append","arguments":{"n":%d}}}`, n, n)
}

func (r *run) done(answer string) {
	if !strings.Contains(answer, `"text":"done"`) {
		r.must(fmt.Errorf("the call was answered with %s", answer))
	}
}

// overHTTP returns what calls a tool of a server.
func (r *run) overHTTP(at string) func(n int) {
	return func(n int) {
		req, err := http.NewRequest(http.MethodPost, at, strings.NewReader(toolCall(n)))
		r.must(err)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		resp, err := http.DefaultClient.Do(req)
		r.must(err)
		answer, err := io.ReadAll(resp.Body)
		r.must(err)
		r.must(resp.Body.Close())
		r.done(string(answer))
	}
}

// tools measures what the gateway adds to a call of an MCP server's tool, beside syncs of the same disk.
func (b *gatewayBench) tools(ctx context.Context, r *run, tools string) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.TrimSpace(toolResult(body)))
	}))
	defer web.Close()
	direct, end := r.stdio(ctx, asServer)
	gated, left := r.stdio(ctx, tools+"/stdio")
	b.addedTo(r, "stdio", direct, gated)
	end()
	left()
	b.addedTo(r, "HTTP", r.overHTTP(web.URL), r.overHTTP(gateway.WebURL(tools, "http", web.URL)))
}

func (b *gatewayBench) addedTo(r *run, over string, direct, gated func(n int)) {
	var alone, through []float64
	took := func(all []float64, work func()) []float64 {
		begun := time.Now()
		work()
		return append(all, time.Since(begun).Seconds())
	}
	direct(0)
	gated(0) // they have begun
	syncs := r.syncs(b.calls, func(n int) {
		alone = took(alone, func() { direct(n + 1) })
		through = took(through, func() { gated(n + 1) })
	})
	r.add("a call of a tool direct, "+over+", median", "ms", "", 1000*quantile(alone, 50))
	r.add("added by the gateway, "+over+", median, less two syncs", "ms", "<= 1", 1000*(quantile(through, 50)-quantile(alone, 50)-2*quantile(syncs, 50)))
}
