package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// ReadOnly returns the agents' own tools that only look, and so may run again.
func ReadOnly() []string {
	return []string{"Read", "Glob", "Grep", "LS", "TodoWrite", "ToolSearch", "WebSearch", "WebFetch"}
}

func runsAgain(name string) bool { return slices.Contains(ReadOnly(), name) }

// WritesFile reports whether all that a tool does is to write one file, so that the file shows whether it has run.
func WritesFile(name string) bool { return name == "Write" || name == "Edit" || name == "NotebookEdit" }

// unreadable stands for the digest of a file that cannot be read.
const unreadable = "unreadable"

// digestOf returns the SHA-256 of the file that a tool is about to write; empty: there is none, or the tool writes none.
func digestOf(h *hookCall) string {
	if !WritesFile(h.Name) {
		return ""
	}
	var input struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	_ = json.Unmarshal(h.Input, &input)
	path := cmp.Or(input.File, input.Notebook)
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.Dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ""
	case err != nil || !info.Mode().IsRegular() || info.Size() > maxImage:
		return unreadable
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return unreadable
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// written returns the digest of the file that a call of Write leaves; empty: it is no such call.
func written(input []byte) string {
	var write struct {
		Content *string `json:"content"`
	}
	if json.Unmarshal(input, &write) != nil || write.Content == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(*write.Content))
	return hex.EncodeToString(sum[:])
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// settleTools notes results that no hook has told, and puts recorded results in the place of the denials that the
// agent had from its hook.
func (g *Gateway) settleTools(body []byte) ([]byte, error) {
	g.mu.Lock()
	idle := len(g.hooks.using)+len(g.hooks.given)+len(g.hooks.ran) == 0
	g.mu.Unlock()
	if idle {
		return body, nil
	}
	var failed error
	edit := relay.Edit{Text: body}
	results := make(map[string]relay.Result) // by use: the last one counts, since providers may use an id again
	for b, raw := range relay.Results(body) {
		g.mu.Lock()
		of := g.hooks.given[b.ID]
		delete(g.hooks.ran, b.ID)
		results[cmp.Or(g.hooks.called[b.ID], b.ID)] = b
		g.mu.Unlock()
		if of != nil {
			recorded, err := g.blockOf(b.ID, of)
			failed = errors.Join(failed, err)
			if recorded != nil {
				edit.Replace(raw, relay.Unmarked(recorded, raw))
			}
		}
	}
	for id, b := range results { // order cannot show: each is of another use
		g.tell(id, &recorder.ToolAnswer{Result: orNull(b.Content), IsError: b.Failed, Late: true})
	}
	return edit.Edited(), failed
}

// begin makes the maps.
func (x *hooks) begin() {
	x.calls, x.using, x.given, x.ran = newCalls(), make(map[string]*using), make(map[string]*asking), make(map[string]*asking)
	x.servers, x.called = make(map[string]bool), make(map[string]string)
}

// intentsOf returns the session's intents of a kind, from a record on, in order.
func (g *Gateway) intentsOf(kind string, from uint64) (all []receipt.Entry) {
	all = slices.DeleteFunc(g.record.Ledger(), func(e receipt.Entry) bool {
		return e.Intent.Cell != g.cell.String() || e.Intent.Kind != kind || e.Abandoned || e.Emitted < from
	})
	slices.SortFunc(all, func(a, b receipt.Entry) int { return cmp.Compare(a.Emitted, b.Emitted) })
	return all
}

// What the model is told of a call that was permitted before a restart.
const (
	ranAlready = "this call ran before the restart; its recorded result is given to the model"
	inDoubt    = "IN DOUBT: this call was permitted before the restart, and nobody can tell whether it ran. Look whether it took effect before you call it again"
)

// recalled decides about a call that has ended in an earlier incarnation: it is denied, has run, or may run again.
func (g *Gateway) recalled(h *hookCall, u *using, before string) (denied string, err error) {
	e := g.entry(u.key)
	result, reason, err := answerOf[recorder.ToolAnswer](g, &e)
	if err != nil {
		return "", err
	}
	switch {
	case e.State == receipt.StateDenied:
		return "denied: " + reason.String(), nil
	case u.answer:
		u.ran = true
		g.mu.Lock()
		defer g.mu.Unlock()
		g.hooks.ran[h.calledAs] = u.asking
		return "", nil
	case result != nil:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.hooks.given[h.ID] = u.asking
		g.summary.ToolsServed++
		return ranAlready, nil
	case runsAgain(h.Name):
		return "", nil
	case !WritesFile(h.Name) || before == unreadable || g.cfg.Offline:
		return inDoubt, nil
	case before != "" && before == written(h.Input):
		return "this call took effect before the restart: the file has the content that it writes", nil
	}
	if use := paramsOf[recorder.ToolRequest](g, u.key); use.Tool == "" || before != use.Before {
		return inDoubt, nil
	}
	return "", nil
}

// ranBefore says why a tool is not to run that an answer from the record asks for: it ran before the restart, or may have. Codex's
// hook names the provider's id or, of a tool that a script of the model's calls, one of its own. All that such a script calls ran.
func (g *Gateway) ranBefore(id string) (denied string) {
	g.mu.Lock()
	of, ran := g.hooks.ran[id]
	if g.hooks.called[id] == "" {
		for id, of = range g.hooks.ran { // order cannot show: where two scripts run at once, either answer denies
			ran = true
		}
	}
	g.mu.Unlock()
	if !ran {
		return ""
	}
	e := g.entry(of.key)
	result, _, err := answerOf[recorder.ToolAnswer](g, &e)
	if err != nil || result == nil {
		return inDoubt
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hooks.given[id] = of
	g.summary.ToolsServed++
	return ranAlready
}

// missedTool says offline that the record does not know a call.
func (g *Gateway) missedTool(h *hookCall) string {
	g.count(func(s *Summary) {
		s.diverge(&Divergence{Request: s.ToolRequests, Path: "the agent", Tool: h.Name, Prompt: shorten(string(h.Input), maxText)})
	})
	return "the record does not have this call"
}

// blockOf returns a recorded result as the model has seen it, or, where it never has, as an agent tells it.
func (g *Gateway) blockOf(id string, of *asking) ([]byte, error) {
	g.mu.Lock()
	found := of.block
	g.mu.Unlock()
	if found != nil {
		return found, nil
	}
	tool := g.entry(of.key)
	later := g.intentsOf(recorder.Call, tool.Emitted)
	for i := 0; i < len(later) && found == nil; i++ {
		for b, raw := range relay.Results(paramsOf[recorder.Request](g, later[i].Intent.Key).Body) {
			if b.ID == id {
				found = raw
			}
		}
	}
	if found == nil && g.cfg.Recalls {
		return nil, nil // the model sees the denial
	} else if found == nil {
		r, reason, err := answerOf[recorder.ToolAnswer](g, &tool)
		if err == nil && r == nil {
			err = errors.New(reason.String())
		}
		if err != nil {
			return nil, err
		}
		if found, err = toldBy(id, r); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	of.block = found
	g.mu.Unlock()
	return found, nil
}

// toldBy returns a result as Claude Code tells it to the model.
func toldBy(id string, r *recorder.ToolAnswer) ([]byte, error) {
	response := r.Result
	block := map[string]any{"type": "tool_result", "tool_use_id": id, "content": json.RawMessage(response)}
	if r.IsError {
		block["is_error"] = true
	}
	var of struct {
		Stdout, Stderr *string
		FilePath       *string `json:"filePath"`
		Type           string
		File           *struct {
			Content   string
			StartLine int `json:"startLine"`
		}
	}
	if !r.Late && json.Unmarshal(response, &of) == nil {
		switch {
		case of.Stdout != nil && of.Stderr != nil:
			block["content"] = strings.Trim(*of.Stdout+"\n"+*of.Stderr, "\n")
		case of.File != nil:
			block["content"] = numbered(of.File.Content, max(of.File.StartLine, 1))
		case of.FilePath != nil && of.Type == "create":
			block["content"] = "File created successfully at: " + *of.FilePath
		case of.FilePath != nil:
			block["content"] = "The file " + *of.FilePath + " has been updated successfully."
		default:
			block["content"] = string(response)
		}
	}
	return json.Marshal(block)
}

// numbered returns lines with their numbers, as the tool Read tells them.
func numbered(text string, from int) string {
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fmt.Fprintf(&out, "%d\t%s\n", from+i, line)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
