package chat

import (
	"bytes"
	"embed"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

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
	text, err := rec.manifest()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{local.ManifestFile: text}
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

// tool is a tool in the manifest.
type tool struct {
	Kind    string
	Renamed string // its name in the recording, where that is another
}

func (rec *Recording) manifest() ([]byte, error) {
	var tools []tool
	for _, kind := range slices.Sorted(maps.Keys(rec.tools)) {
		t := tool{Kind: kind}
		if name := rec.tools[kind]; "tool."+name != kind {
			t.Renamed = strconv.Quote(name)
		}
		tools = append(tools, t)
	}
	most := 0
	for _, run := range rec.runs {
		for _, m := range run.messages {
			most = max(most, m.calls)
		}
	}
	if most <= manifest.DefaultEffects {
		most = 0
	}
	t, err := template.ParseFS(templates, "files/world.yaml.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Sums
		File, World string
		Tools       []tool
		ManyCalls   int
	}{rec.Sums(), strconv.Quote(filepath.Base(rec.name)), strconv.Quote(rec.world()), tools, most})
	return out.Bytes(), err
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
