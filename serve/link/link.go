// Package link lets whoever has a link decide about one intent of a world, as it waits for approval now, and do
// nothing else. It is a part of worldctl, and not an API.
//
// A ticket is the end of such a link: the key of the intent and 16 bytes of HMAC-SHA256, in base64url. The HMAC is
// under a key that is made of the world's keyring, over a line of what is decided about: the key, the digest of the
// params, the record and the attempt at which the intent stands, and the digests of its effect, capability and
// policies. So nothing is stored, and a ticket is good once: as soon as the intent was decided, has expired, or waits
// for anything else, it is that of nothing. A rotation of the keyring ends all.
//
// GET shows the request, and changes nothing: programs that look at links before people do may. POST decides.
package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Actor is whom the journal names for a decision by a link: nobody has said who they are.
const Actor = "link"

const (
	macBytes  = 16
	maxForm   = 16 << 10 // bytes of what a browser posts
	maxReason = 1_000    // bytes
)

// Of returns the ticket of an intent; empty: it does not wait for approval, or the world cannot sign.
func Of(lw *local.World, e *receipt.Entry) string {
	key, err := lw.Keys().TicketKey()
	if err != nil || key == nil || view.WantedOf(e) != view.WantsApprove || e.Seen == nil {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s %s %d %d %s %s %s", e.Intent.Key, e.Params, e.Emitted, e.Attempt, e.Seen.Effect, e.Seen.Cap, e.Seen.Rules)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(e.Intent.Key.Hash[:])[:len(e.Intent.Key.Hash)+macBytes])
}

// Find returns the intent that a ticket decides about; false: it decides about none any more, or never did.
func Find(lw *local.World, ticket string) (e receipt.Entry, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil || len(data) != len(e.Intent.Key.Hash)+macBytes {
		return e, false
	}
	lw.View(func(m *world.Moment) { e, ok = m.Intent(receipt.Key{Hash: receipt.Hash(data[:len(data)-macBytes])}) })
	return e, ok && hmac.Equal([]byte(Of(lw, &e)), []byte(ticket))
}

// Serve answers who has followed a link. Which hosts may be named in it is the caller's to check.
func Serve(w http.ResponseWriter, r *http.Request, lw *local.World, ticket string) {
	j := view.Journal{Local: lw}
	e, ok := Find(lw, ticket)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		page(w, http.StatusMethodNotAllowed, "This link takes GET and POST", "")
	case r.Method == http.MethodPost && new(http.CrossOriginProtection).Check(r) != nil:
		page(w, http.StatusForbidden, "Another page has sent this", "<p>Nothing was decided. Open the link itself.</p>")
	case !ok:
		Gone(w)
	case r.Method == http.MethodPost:
		decide(w, r, j, &e)
	default:
		show(w, j, &e)
	}
}

// Gone answers who has followed what is a link to no request.
func Gone(w http.ResponseWriter) {
	page(w, http.StatusGone, "There is nothing to decide here", "<p>Somebody has decided, or the request has expired, or this was never a link to one.</p>")
}

// show writes the page of a request.
func show(w http.ResponseWriter, j view.Journal, e *receipt.Entry) {
	in, err := j.Intent(e)
	var params string
	if err == nil {
		params, err = indented(in.Kind, in.Params)
	}
	if err != nil {
		page(w, http.StatusInternalServerError, "The request cannot be read", "")
		return
	}
	who, _ := canon.Lookup(in.Params, "principal") // of a session of an agent
	server, _ := canon.Lookup(in.Params, "server")
	tool, _ := canon.Lookup(in.Params, "tool")
	var use recorder.ToolRequest
	if in.Kind == recorder.MCPCall {
		_ = canon.UnmarshalTrusted(in.Params, &use) // of another form: it says no more
	}
	described := ""
	if use.ToolChanged {
		described = "otherwise than before: its server has changed what it says of the tool"
	}
	var most receipt.Cost
	j.Local.View(func(m *world.Moment) {
		if of, ok := m.Manifest().Effects[in.Kind]; ok {
			most = governance.MostOf(&of, in.Params)
		}
	})
	expires := "never"
	if in.Deadline != 0 {
		expires = j.Tick(in.Deadline)
	}
	var out strings.Builder
	out.WriteString("<table>")
	for _, of := range [][2]string{
		{"world", j.Local.Keys().World()},
		{"asked by", in.Cell},
		{"started by", text(who)},
		{"effect", in.Kind},
		{"server", text(server)},
		{"tool", text(tool)},
		{"described", described},
		{"with", string(use.More)},
		{"policies", strings.Join(in.Rules, ", ")},
		{"costs at most", view.Cost(most)},
		{"expires", expires},
		{"intent", in.Key.String()},
	} {
		if of[1] != "" {
			fmt.Fprintf(&out, "<tr><th>%s</th><td>%s</td></tr>", of[0], shown(of[1], ""))
		}
	}
	fmt.Fprintf(&out, "</table><pre>%s</pre><form method=post><input name=reason maxlength=%d placeholder=\"why (optional)\">"+
		"<p><button name=do value=approve>Approve</button> <button name=do value=deny>Deny</button></p></form>", shown(params, "\n"), maxReason)
	page(w, http.StatusOK, "May this be done?", out.String())
}

// decide takes a decision.
func decide(w http.ResponseWriter, r *http.Request, j view.Journal, e *receipt.Entry) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	how := journal.Resolution(r.PostFormValue("do"))
	reason := r.PostFormValue("reason")
	if how != journal.Approve && how != journal.Disapprove || len(reason) > maxReason {
		page(w, http.StatusBadRequest, "Nothing was decided", "<p>It takes approve or deny, and a short reason.</p>")
		return
	}
	d, err := j.Decide(r.Context(), &journal.Resolved{Key: e.Intent.Key, How: how, Params: e.Params, Actor: Actor, Reason: reason}, e)
	switch {
	case err != nil:
		page(w, http.StatusConflict, "Nothing was decided", "<p>"+shown(err.Error(), "")+"</p>")
	case d.Denied():
		page(w, http.StatusForbidden, "It is denied now", "<p>"+shown(d.Why, "")+"</p>")
	case how == journal.Approve:
		page(w, http.StatusOK, "Approved", "")
	default:
		page(w, http.StatusOK, "Denied", "")
	}
}

// page writes a page. Body is HTML.
func page(w http.ResponseWriter, status int, title, body string) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would take the Origin from what the page posts
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><meta name=robots content=noindex>"+
		"<title>worldkernel</title><style>body{font:16px sans-serif;max-width:50em;margin:2em auto;padding:0 1em}th{text-align:left;vertical-align:top;padding-right:1em}"+
		"td,pre{overflow-wrap:anywhere;white-space:pre-wrap}pre{background:#8882;padding:1em}button{font:inherit;padding:.5em 2em}input{font:inherit;width:100%%}</style>"+
		"<h1>%s</h1>%s\n", title, body) // who has gone needs none
}

// shown returns a text as HTML. What would hide a part of it is spelled out.
func shown(s, controls string) string { return html.EscapeString(view.Visible(s, controls)) }

// text returns a text of params; empty: it is none.
func text(item canon.Raw) (s string) {
	_ = canon.UnmarshalTrusted(item, &s)
	return s
}

// asked returns what a person decides about of params: of an agent's call what it does. The rest is the gateway's own, or stands
// in the table of the page.
func asked(kind string, params canon.Raw) (canon.Raw, error) {
	switch kind {
	case recorder.MCPCall, recorder.OwnTool:
		return canon.Lookup(params, "arguments")
	case recorder.Call:
		out := make(map[string]canon.Raw)
		for _, name := range []string{"model", "prompt", "tools", "server_tools", "max_tokens", "input_tokens"} {
			item, err := canon.Lookup(params, name)
			if err != nil {
				return nil, err
			}
			out[name] = item
		}
		return canon.Marshal(out)
	}
	return params, nil
}

// indented returns what a person decides about of params, as JSON.
func indented(kind string, params canon.Raw) (string, error) {
	of, err := asked(kind, params)
	if err != nil {
		return "", err
	}
	data, err := canon.ToJSON(of)
	var out bytes.Buffer
	if err == nil {
		err = json.Indent(&out, data, "", "  ")
	}
	return out.String(), err
}
