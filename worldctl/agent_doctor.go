package worldctl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// Bounds of what a doctor looks at.
const (
	doctorTime  = 5 * time.Minute        // of one run of the agent
	doctorCalls = 100                    // requests that are answered in a run
	doctorPause = 300 * time.Millisecond // before an answer: what is asked meanwhile is asked at once
	doctorPaths = 8                      // differences of a request that are named
)

// agentReport is what a doctor says of an agent.
type agentReport struct {
	Requests []requestReport `json:"requests"`
	Tools    []toolReport    `json:"tools"`
}

// requestReport is what a doctor says of a request of the second run.
type requestReport struct {
	Request    int      `json:"request"` // from 1
	Model      string   `json:"model"`
	Prompt     string   `json:"prompt"`
	Recognized bool     `json:"recognized"` // as one of the first run
	Differs    []string `json:"differs"`    // the JSON pointers of the first places at which it differs from that
	Beside     []int    `json:"beside"`     // requests that are made before this one is answered
}

// toolReport is what a doctor says of a tool that the agent offers a model.
type toolReport struct {
	Tool  string `json:"tool"`
	Seen  string `json:"seen"`  // where it is judged
	Crash string `json:"crash"` // what becomes of a call after a crash
}

func newAgentDoctorCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:  "doctor -- COMMAND [ARGUMENT...]",
		Args: needsAgent,
		RunE: func(cmd *cobra.Command, args []string) error { return c.examineAgent(cmd.Context(), args) },
	}
}

// examineAgent runs an agent twice, and says what was seen.
func (c *cli) examineAgent(ctx context.Context, command []string) (err error) {
	dir, err := os.MkdirTemp("", "worldctl-doctor-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := *c
	d.world, d.storeFlags, d.quiet = filepath.Join(dir, "world"), storeFlags{}, true
	for _, name := range []string{"1", "2"} {
		if err := d.examineRun(ctx, name, command); err != nil {
			return err
		}
	}
	var report agentReport
	err = d.with(func(lw *local.World) error { return report.read(lw) })
	if err != nil {
		return err
	}
	if len(report.Requests) == 0 {
		return hinted(errors.New("nothing of the agent reached the gateway"),
			"an agent that does not heed OPENAI_BASE_URL or ANTHROPIC_BASE_URL has to be pointed at it: docs/gateway.md says how")
	}
	return c.showExamined(&report)
}

// examineRun runs an agent against a model that is made up.
func (c *cli) examineRun(ctx context.Context, name string, command []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var asked atomic.Int64
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > doctorCalls {
			http.Error(w, "the doctor answers no more", http.StatusForbidden)
			return
		}
		madeUp(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close() //nolint:errcheck // nobody asks it any more
	at := "http://" + listener.Addr().String() + "/"
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	x := agentRun{Name: name, Command: command, Upstream: map[string]string{relay.OpenAI: at + relay.OpenAI, relay.Anthropic: at + relay.Anthropic}}
	x.serve = func(ctx context.Context, g *attached) (int, error) {
		var said bytes.Buffer
		code, err := c.startAgentTo(ctx, g, io.Discard, &said)
		if code != 0 {
			text := strings.Split(strings.TrimSpace(said.String()), "\n")
			fmt.Fprintf(c.stderr, "note: run %s of the agent %s: %s\n", name, endedBy(code), visible(text[len(text)-1], ""))
		}
		return 0, err
	}
	return c.runAgent(ctx, &x)
}

// madeUp answers a request as a provider would.
func madeUp(w http.ResponseWriter, r *http.Request) {
	dialect, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, gateway.MaxBody)) // anybody on this machine may ask
	var asked *relay.Asked
	if err == nil {
		asked, err = relay.Read(dialect, r.Method, "/"+path, r.Header, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	header, answer := http.Header{"Content-Type": {"application/json"}}, []byte(`{"object":"list","data":[],"input_tokens":1}`)
	if asked.Asks() {
		<-time.After(doctorPause)
		if header, answer, err = asked.Given([]byte("This is a rehearsal: nothing has to be done.")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	maps.Copy(w.Header(), header)
	_, _ = w.Write(answer)
}

// examined is a request of a run.
type examined struct {
	*relay.Asked

	lineage string
	entry   receipt.Entry
}

// requestsOf returns the requests of a session that ask a model, in order.
func requestsOf(lw *local.World, session string) (all []examined, err error) {
	j := recordsOf(lw)
	for _, e := range modelCalls(j, session) {
		asked, err := requestOf(j, &e)
		if err != nil {
			return nil, err
		}
		_, lineage, _ := strings.Cut(e.Intent.Tag, " ")
		if asked.Asks() {
			all = append(all, examined{asked, lineage, e})
		}
	}
	return all, nil
}

// read reads what the two runs have left in their world.
func (a *agentReport) read(lw *local.World) error {
	first, err1 := requestsOf(lw, "1")
	second, err2 := requestsOf(lw, "2")
	s, err3 := findSession(lw, []string{"2"})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	offered, provided := make(map[string]bool), make(map[string]bool)
	for i := range second {
		r := &second[i]
		of := slices.IndexFunc(first, func(f examined) bool { return f.lineage == r.lineage })
		report := requestReport{Request: i + 1, Model: r.Model, Prompt: r.Prompt, Recognized: of >= 0, Differs: []string{}, Beside: []int{}}
		if of < 0 && len(first) > 0 {
			of = 0 // what is left of the first run comes in order
		}
		if of >= 0 {
			report.Differs = append(report.Differs, gateway.Differences(first[of].Body, r.Body, doctorPaths)...)
			first = slices.Delete(first, of, of+1)
		}
		for k := range second {
			if o := &second[k].entry; k != i && o.Emitted < r.entry.Finished && r.entry.Emitted < o.Finished {
				report.Beside = append(report.Beside, k+1)
			}
		}
		a.Requests = append(a.Requests, report)
		for _, tool := range r.Tools {
			offered[tool] = true
		}
		for _, tool := range r.ServerTools {
			provided[tool] = true
		}
	}
	a.examineTools(s, offered, provided)
	return nil
}

// examineTools says where tools are judged, and what becomes of their calls after a crash.
func (a *agentReport) examineTools(s *session, offered, provided map[string]bool) {
	const never = "is not repeated; in doubt if it was under way"
	for server, pins := range s.Pins { // order cannot show: sorted below
		for name := range pins.Tools { // likewise
			maps.DeleteFunc(offered, func(tool string, _ bool) bool {
				return strings.HasSuffix(tool, "__"+name) && strings.Contains(tool, server+"__")
			})
			a.Tools = append(a.Tools, toolReport{server + "/" + name, "worldctl mcp", never})
		}
	}
	for tool := range provided { // likewise
		a.Tools = append(a.Tools, toolReport{tool, "requests: the provider runs it", "is recorded with its answer"})
	}
	for tool := range offered { // likewise
		of := toolReport{tool, "answers: the agent has no hooks", "runs again"}
		switch known := clientOf(s.Command); {
		case known.recalls:
			of.Seen, of.Crash = "answers", never
		case !known.asks:
		case slices.Contains(gateway.ReadOnly(), tool):
			of.Seen, of.Crash = "hooks", "runs again: it only reads"
		case gateway.WritesFile(tool):
			of.Seen, of.Crash = "hooks", "runs again if its file is unchanged"
		default:
			of.Seen, of.Crash = "hooks", never
		}
		a.Tools = append(a.Tools, of)
	}
	slices.SortFunc(a.Tools, func(a, b toolReport) int { return cmp.Or(cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.Tool, b.Tool)) })
}

func (c *cli) showExamined(a *agentReport) error {
	unknown := 0
	err := c.object("agent-doctor", a, func() {
		tabulate(c, table.Row{"request", "model", "asked", "recognized", "at once with", "differs at"}, a.Requests, func(r *requestReport) table.Row {
			return table.Row{r.Request, r.Model, brief(r.Prompt, maxCell), r.Recognized, strings.Trim(fmt.Sprint(r.Beside), "[]"), strings.Join(r.Differs, "\n")}
		})
		tabulate(c, table.Row{"tool", "judged in", "after a crash"}, a.Tools, func(t *toolReport) table.Row {
			return table.Row{t.Tool, t.Seen, t.Crash}
		})
	})
	c.note("note: turns after the first were not seen, since the model asks for no tool: after an agent run, worldctl agent replay sees all")
	for _, r := range a.Requests {
		if !r.Recognized {
			unknown++
		}
	}
	if err != nil || unknown == 0 {
		return err
	}
	c.note("%s of the second run would not be recognized: agent resume would stop there", view.Number(uint64(unknown), "request"))
	return &fault{err: errDifferent, code: exitVerify}
}
