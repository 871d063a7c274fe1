package host

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// verifier returns the verifier of the trial's effect.
func (x *httpTrial) verifier(t *testing.T, config any) Verifier {
	t.Helper()
	s := x.setup(t)
	s.Config = httpCBOR(t, config)
	v, err := newHTTPVerifier(x.network(t))(s)
	require.NoError(t, err)
	return v
}

func TestHTTPVerifyBelievesClearAnswersOnly(t *testing.T) {
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.URL.Query().Get("key") != "k:1" || r.Header.Get("Idempotency-Key") != "k:1" || r.Header.Get("A") != "s3cr3t" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("bare") {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(pathNumber(r))
		switch r.URL.Query().Get("body") {
		case "json":
			fmt.Fprint(w, `{"id": 7}`)
		case "html":
			fmt.Fprint(w, `<html>`)
		case "cut":
			panic(http.ErrAbortHandler)
		case "long":
			fmt.Fprint(w, `"`+strings.Repeat("x", defaultAnswerBytes)+`"`)
		}
	})
	for path, want := range map[string]receipt.FoundVerdict{
		"/200?body=json": receipt.Happened, "/200": receipt.Happened,
		"/200?body=json&bare": receipt.Happened, "/200?body=html&bare": receipt.Unknown, "/200?bare": receipt.Happened,
		"/404?body=json": receipt.NotHappened, "/410": receipt.NotHappened,
		"/200?body=html": receipt.Unknown, "/200?body=cut": receipt.Unknown, "/200?body=long": receipt.Unknown,
		"/202?body=json": receipt.Unknown, "/302": receipt.Unknown, "/401": receipt.Unknown, "/405": receipt.Unknown, "/500": receipt.Unknown,
	} {
		x := httpTrial{
			config: m{"url": base + path, "method": "POST", "secret_headers": m{"A": "secret://T"}},
			open:   []string{addr}, secrets: map[string]string{"secret://T": "s3cr3t"},
		}
		found, err := x.verifier(t, m{}).Verify(t.Context(), Call{External: "k:1"})
		require.NoError(t, err)
		require.Equal(t, want, found.Verdict, "%s: %s", path, found.Reason)
		require.NotEmpty(t, found.Reason)
		require.Equal(t, strings.HasPrefix(path, "/200?body=json"), len(found.Payload) > 0, path)
	}
}

func TestHTTPVerifierGuardsAsTheAdapterDoes(t *testing.T) {
	base, _ := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	_, other := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	x := httpTrial{config: m{"url": base}}
	v := x.verifier(t, m{"url": "http://169.254.169.254.test/"})
	found, err := v.Verify(t.Context(), Call{External: "k"})
	require.NoError(t, err)
	require.Equal(t, receipt.Unknown, found.Verdict)
	v = (&httpTrial{config: m{}}).verifier(t, m{})
	found, err = v.Verify(t.Context(), Call{External: "k"})
	require.NoError(t, err)
	require.Equal(t, receipt.Unknown, found.Verdict, "there is no url")

	for name, c := range map[string]struct {
		effect   m
		resource string
	}{
		"no config.url names loopback":  {m{}, base},
		"config.url names another port": {m{"url": "http://" + other}, base},
		"metadata":                      {m{"url": base}, "http://169.254.169.254/latest"},
		"a number":                      {m{"url": base}, "http://2130706433/"},
		"not a url":                     {m{"url": base}, "file:///etc/passwd"},
		"nothing":                       {m{"url": base}, ""},
	} {
		v := (&httpTrial{config: c.effect}).verifier(t, m{})
		found, err := v.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: &receipt.StateChange{Resource: c.resource}})
		require.NoError(t, err, name)
		require.Equal(t, receipt.Unknown, found.Verdict, name)
		require.NotEmpty(t, found.Reason, name)
	}
	found, err = v.Confirm(t.Context(), Call{}, &receipt.Receipt{})
	require.NoError(t, err)
	require.Equal(t, receipt.Unknown, found.Verdict)
}

func TestHTTPConfirmReachesWhatTheCapabilityNames(t *testing.T) {
	base, addr := httpServer(t, func(http.ResponseWriter, *http.Request) {})
	r := &receipt.Receipt{StateChange: &receipt.StateChange{Resource: base + "/thing"}}
	named := Call{Cap: manifest.Cap{Type: manifest.CapHTTP, Params: manifest.CapParams{Hosts: []string{"127.0.0.1"}}}}
	for _, c := range []struct {
		call Call
		want receipt.FoundVerdict
		open []string
	}{{named, receipt.Happened, []string{addr}}, {Call{}, receipt.Unknown, nil}} {
		v := (&httpTrial{config: m{"method": "PUT"}, open: c.open}).verifier(t, m{})
		found, err := v.Confirm(t.Context(), c.call, r)
		require.NoError(t, err)
		require.Equal(t, c.want, found.Verdict, found.Reason)
	}
}

func TestHTTPVerifierKeepsSecretsForTheirOrigin(t *testing.T) {
	var got []string
	serve := func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path+" "+r.Header.Get("A")+r.Header.Get("B"))
	}
	base, addr := httpServer(t, serve)
	other, otherAddr := httpServer(t, serve)
	x := httpTrial{
		config: m{"url": base + "/effect", "method": "PUT", "secret_headers": m{"A": "secret://A"}},
		open:   []string{addr, otherAddr}, secrets: map[string]string{"secret://A": "ours", "secret://B": "theirs"},
	}
	own := x.verifier(t, m{"url": other + "/ask", "secret_headers": m{"B": "secret://B"}})
	_, err := own.Verify(t.Context(), Call{External: "k"})
	require.NoError(t, err)
	_, err = own.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: &receipt.StateChange{Resource: other + "/thing"}})
	require.NoError(t, err)
	effects := x.verifier(t, m{})
	_, err = effects.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: &receipt.StateChange{Resource: base + "/thing"}})
	require.NoError(t, err)
	require.Equal(t, []string{"/ask theirs", "/thing theirs", "/thing ours"}, got)

	target, err := own.(*httpVerifier).resource(base + "/thing")
	require.NoError(t, err)
	require.Empty(t, target.Secrets)
	require.False(t, target.Reviewed)
}

func TestHTTPConfirmComparesTheStrongestSign(t *testing.T) {
	var etag, modified string
	status := http.StatusOK
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "HEAD" {
			t.Errorf("asked with %s", r.Method)
		}
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		if modified != "" {
			w.Header().Set("Last-Modified", modified)
		}
		w.WriteHeader(status)
	})
	v := (&httpTrial{config: m{"url": base, "method": "PUT"}, open: []string{addr}}).verifier(t, m{})
	for _, c := range []struct {
		status         int
		etag, modified string
		change         receipt.StateChange
		want           receipt.FoundVerdict
	}{
		{200, `"1"`, "x", receipt.StateChange{ETag: `"1"`, Version: "y"}, receipt.Happened},
		{200, `W/"1"`, "", receipt.StateChange{ETag: `"1"`}, receipt.Happened},
		{200, `"2"`, "y", receipt.StateChange{ETag: `"1"`, Version: "y"}, receipt.NotHappened},
		{200, "", "y", receipt.StateChange{ETag: `"1"`, Version: "y"}, receipt.Happened},
		{200, `"1"`, "x", receipt.StateChange{Version: "y"}, receipt.NotHappened},
		{204, "", "", receipt.StateChange{ETag: `"1"`}, receipt.Happened},
		{404, "", "", receipt.StateChange{ETag: `"1"`}, receipt.NotHappened},
		{410, "", "", receipt.StateChange{}, receipt.NotHappened},
		{404, "", "", receipt.StateChange{Version: httpGone}, receipt.Happened},
		{200, "", "", receipt.StateChange{Version: httpGone}, receipt.NotHappened},
		{302, "", "", receipt.StateChange{}, receipt.Unknown},
		{403, `"1"`, "", receipt.StateChange{ETag: `"1"`}, receipt.Unknown},
		{503, "", "", receipt.StateChange{Version: httpGone}, receipt.Unknown},
	} {
		status, etag, modified = c.status, c.etag, c.modified
		c.change.Resource = base
		found, err := v.Confirm(t.Context(), Call{}, &receipt.Receipt{StateChange: &c.change})
		require.NoError(t, err)
		require.Equal(t, c.want, found.Verdict, "%+v: %s", c, found.Reason)
	}
}

func TestHTTPVerifierRefusesBadConfig(t *testing.T) {
	for _, config := range []string{`{"method": "GET"}`, `{"url": "http://0x7f.1"}`, `{"secret_headers": {"a": "plain"}}`, `{"url": 7}`} {
		s := (&httpTrial{config: m{}}).setup(t)
		s.Config = httpCBOR(t, config)
		_, err := newHTTPVerifier(newHTTPNetwork())(s)
		require.Error(t, err, config)
	}
}
