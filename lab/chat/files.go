package chat

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

//go:embed files
var templates embed.FS

// cassetteFile is the file that holds the recorded answers.
const cassetteFile = "cassette.jsonl"

// Sums counts what is in a recording.
type Sums struct {
	Runs     int `json:"runs"`
	Messages int `json:"messages"` // that are not tool results
	Calls    int `json:"calls"`
	Failed   int `json:"failed"` // calls whose answer is an error
	Lost     int `json:"lost"`   // calls without an answer: in doubt
}

// Sums counts what is in the recording.
func (rec *Recording) Sums() Sums {
	s := Sums{Runs: len(rec.runs)}
	for _, run := range rec.runs {
		s.Messages += len(run.messages)
		s.Calls += len(run.calls)
		for _, call := range run.calls {
			switch {
			case !call.answered:
				s.Lost++
			case call.failed:
				s.Failed++
			}
		}
	}
	return s
}

// files are the manifest and what it names.
func (rec *Recording) files() (map[string][]byte, error) {
	files := map[string][]byte{local.ManifestFile: rec.manifest()}
	var err error
	if len(rec.tools) > 0 {
		if files[cassetteFile], err = rec.cassette(); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"reducers/agent.star", "schemas/message.json"} {
		if files[name], err = templates.ReadFile("files/" + name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// The parts of the manifest; text/template would keep every method of every type in the program, 8 MB of worldctl.
const (
	beginOfManifest = `# Recorded runs of agents with tools, imported from %q:
# %d runs, %d messages, %d tool calls of which %d failed.
#
# Every run is a cell, agent/RUN. Message j of a run falls due at tick j + 1, so
# that all runs go on side by side. What a tool answered then it answers now.
#
# To change something, edit this file, then type worldctl propose: the world runs
# the manifest in force, and the change is shadowed on these runs, approved and
# applied before it is that.
world: %q
version: 1
seed: 1
clock: {epoch: 2026-01-01T00:00:00Z, tick: 1m}

reducers:
  agent:
    engine: starlark
    source: reducers/agent.star
`
	capsOfManifest = `
# The tools that the recording used. Take one away: worldctl shadow world.yaml says
# what would have become of its runs, and worldctl propose asks for the change.
caps:
  tools:
    type: any
    params:
      kinds:
`
	policiesOfManifest = `
# What no policy allows is denied, and a deny wins over every allow. Try this, and
# worldctl shadow world.yaml:
#   - {name: no %[1]s, when: 'intent.kind == "%[1]s"', decide: deny}
policies:
  - {name: recorded tools, when: 'intent.kind.startsWith("tool.")', decide: allow}
`
)

func (rec *Recording) manifest() []byte {
	kinds := slices.Sorted(maps.Keys(rec.tools))
	most := 0
	for _, run := range rec.runs {
		for _, m := range run.messages {
			most = max(most, m.calls)
		}
	}
	var b bytes.Buffer
	sums := rec.Sums()
	fmt.Fprintf(&b, beginOfManifest, filepath.Base(rec.name), sums.Runs, sums.Messages, sums.Calls, sums.Failed, rec.world())
	if len(kinds) > 0 {
		b.WriteString("    grants: [tools]\n")
	}
	b.WriteString("    on_error: halt            # a run whose reducer fails stops; the others go on\n")
	if most > manifest.DefaultEffects {
		fmt.Fprintf(&b, "    limits: {effects: %d} # one message calls so many tools\n", most)
	}
	b.WriteString("\nevents:\n  chat.message: {schema: schemas/message.json}\n")
	if len(kinds) > 0 {
		rec.writeTools(&b, kinds)
	}
	b.WriteString("\nrouting:\n  - {event: chat.message, reducer: agent, key: event.data.run}\n")
	return b.Bytes()
}

func (rec *Recording) writeTools(b *bytes.Buffer, kinds []string) {
	b.WriteString("\n# To let a tool do something else, give it another adapter, then worldctl propose.\neffects:\n")
	for _, kind := range kinds {
		fmt.Fprintf(b, "  %s: {adapter: recorded, config: {cassette: %s}}", kind, cassetteFile)
		if name := rec.tools[kind]; "tool."+name != kind {
			fmt.Fprintf(b, " # %q", name) // its name in the recording
		}
		b.WriteString("\n")
	}
	b.WriteString(capsOfManifest)
	for _, kind := range kinds {
		fmt.Fprintf(b, "        - %s\n", kind)
	}
	fmt.Fprintf(b, policiesOfManifest, kinds[0])
}

// world names the world after the file, so that the same recording makes the
// same manifest in every directory.
func (rec *Recording) world() string {
	base := filepath.Base(rec.name)
	name := strings.ToValidUTF8(strings.TrimSuffix(base, filepath.Ext(base)), "_")
	name = strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return '_'
	}, name)
	if name == "" || len(name) > manifest.MaxNameBytes {
		return "chat"
	}
	return name
}

// cassette returns the recorded answers as lines for the recorded adapter,
// which finds the n-th equal call of a cell at its n-th equal line.
func (rec *Recording) cassette() ([]byte, error) {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	for _, run := range rec.runs {
		cell, err := canon.Marshal("agent/" + run.key)
		if err != nil {
			return nil, err
		}
		for _, call := range run.calls {
			line := struct {
				Cell    canon.Raw `json:"cell"`
				Kind    string    `json:"kind"`
				Params  canon.Raw `json:"params"`
				Status  string    `json:"status,omitempty"`
				Payload canon.Raw `json:"payload"`
			}{Cell: cell, Kind: call.kind, Params: call.params, Payload: call.answer}
			switch {
			case !call.answered:
				line.Status, line.Payload = "lost", canon.Raw(canon.Null)
			case call.failed:
				line.Status = "error"
			}
			if err := lines.Encode(line); err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), nil
}
