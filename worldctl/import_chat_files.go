package worldctl

import (
	"bytes"
	"embed"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

//go:embed import_chat
var chatFiles embed.FS

// chatCassette is the file that holds the recorded answers.
const chatCassette = "cassette.jsonl"

// chatSums counts what is in a recording.
type chatSums struct {
	Runs     int `json:"runs"`
	Messages int `json:"messages"` // that are not tool results
	Calls    int `json:"calls"`
	Failed   int `json:"failed"` // calls whose answer is an error
}

func (rec *chatRecording) sums() chatSums {
	s := chatSums{Runs: len(rec.runs)}
	for _, run := range rec.runs {
		s.Messages += len(run.messages)
		s.Calls += len(run.calls)
		for _, call := range run.calls {
			if call.failed {
				s.Failed++
			}
		}
	}
	return s
}

// writeFiles writes the manifest and what it names.
func (rec *chatRecording) writeFiles(dir string) error {
	manifestText, err := rec.manifest()
	if err != nil {
		return err
	}
	cassette, err := rec.cassette()
	if err != nil {
		return err
	}
	files := map[string][]byte{local.ManifestFile: manifestText}
	if len(rec.tools) > 0 {
		files[chatCassette] = cassette
	}
	for _, name := range []string{"reducers/agent.star", "schemas/message.json"} {
		if files[name], err = fs.ReadFile(chatFiles, "import_chat/"+name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(at, files[name], 0o666); err != nil {
			return err
		}
	}
	return nil
}

// chatTool is a tool in the manifest.
type chatTool struct {
	Kind    string
	Renamed string // its name in the recording, where that is another
}

func (rec *chatRecording) manifest() ([]byte, error) {
	var tools []chatTool
	for _, kind := range slices.Sorted(maps.Keys(rec.tools)) {
		tool := chatTool{Kind: kind}
		if name := rec.tools[kind]; "tool."+name != kind {
			tool.Renamed = strconv.Quote(name)
		}
		tools = append(tools, tool)
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
	t, err := template.ParseFS(chatFiles, "import_chat/world.yaml.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		chatSums
		File, World string
		Tools       []chatTool
		ManyCalls   int
	}{rec.sums(), strconv.Quote(filepath.Base(rec.file)), strconv.Quote(rec.world()), tools, most})
	return out.Bytes(), err
}

// world names the world after the file, so that the same recording makes the
// same manifest in every directory.
func (rec *chatRecording) world() string {
	base := filepath.Base(rec.file)
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
func (rec *chatRecording) cassette() ([]byte, error) {
	var out bytes.Buffer
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
			if call.failed {
				line.Status = "error"
			}
			text, err := marshal(line)
			if err != nil {
				return nil, err
			}
			out.Write(append(text, '\n'))
		}
	}
	return out.Bytes(), nil
}
