//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// answerOld answers as a server of an older protocol, written by hand, does: what
// it does not know, request or notification, it ignores. Empty: it is silent.
func answerOld(line []byte) []byte {
	var msg struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(line, &msg) != nil {
		return nil
	}
	result := map[string]string{
		"initialize": `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"echo"}]}`,
	}[msg.Method]
	if result == "" || msg.ID == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
}

// runOld is answerOld on standard streams.
func runOld(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if answer := answerOld(lines.Bytes()); answer != nil {
			_, _ = out.Write(append(answer, '\n'))
		}
	}
}

// A server without sessions that starts slowly finds both beginnings in its input, and answers all the same.
func TestServerWithoutSessionsMayStartSlowly(t *testing.T) {
	t.Parallel()
	a := adapterOf(t, setupOf(t, stdioConfig(t, "late"), manifest.Effect{}))
	got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
}

func TestServerThatIgnoresWhatItDoesNotKnowAnswers(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	says := func(status int, contentType string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			w.WriteHeader(status)
		}
	}
	configs := map[string]string{"streams": stdioConfig(t, "old")}
	for name, silence := range map[string]http.HandlerFunc{
		"no answer": hang, "202": says(202, ""), "204": says(204, ""), "200": says(200, ""), "200 as JSON": says(200, "application/json"),
		"200 as HTML": says(200, "text/html"), "200 as events": says(200, "text/event-stream"),
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if answer := answerOld(body); answer != nil {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Mcp-Session-Id", "s1")
				_, _ = w.Write(answer)
				return
			}
			silence(w, r)
		}))
		t.Cleanup(s.Close)
		configs["HTTP, "+name] = `{"url":"` + s.URL + `"}`
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := New(setupOf(t, config, manifest.Effect{}))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			got, err := a.Perform(ctx, callOf(t, "echo", `{}`))
			require.NoError(t, err)
			require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
			require.True(t, bytes.Contains(got.Payload, []byte("echo")))
			require.NoError(t, a.(io.Closer).Close())
		})
	}
}
