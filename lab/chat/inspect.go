package chat

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world"
)

// maxUnpackedBytes bounds what an archive's samples unpack to, and what the attachments of samples come to where they are used.
const maxUnpackedBytes = 256 << 20

// zipZstd is how Inspect compresses members of archives since 2026: APPNOTE.TXT 4.4.5.
const zipZstd = 93

var (
	sampleMember = regexp.MustCompile(`^samples/.+_epoch_\d+\.json$`)
	chunkMember  = regexp.MustCompile(`^samples/.+_epoch_\d+/`)
	// badNumbers are texts, and what Python writes for numbers that JSON does not have: scores often are.
	badNumbers = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b`)
)

// inspectRuns makes runs of a log of Inspect, and reports whether data is one: JSON, or a zip archive of JSON (.eval).
func inspectRuns(file string, data []byte) (runs []runText, is bool, err error) {
	left := maxUnpackedBytes
	add := func(text runText) error {
		text.json = plainNumbers(text.json)
		more, err := sampleRuns(text, &left)
		runs = append(runs, more...)
		return err
	}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		return runs, true, eachMember(file, data, add)
	}
	data = plainNumbers(data)
	begin, samples, is := samplesIn(data)
	if !is || samples == nil {
		return nil, is, nil
	}
	for text, err := range runTexts(file, samples) {
		if err == nil {
			text.line += bytes.Count(data[:begin], []byte("\n"))
			err = add(text)
		}
		if err != nil {
			return nil, true, err
		}
	}
	return runs, true, nil
}

// plainNumbers makes texts of what Python writes for numbers that JSON does not have.
func plainNumbers(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	return badNumbers.ReplaceAllFunc(data, func(b []byte) []byte {
		if b[0] == '"' {
			return b
		}
		return strconv.AppendQuote(nil, string(b))
	})
}

// samplesIn finds the samples of a log of Inspect, and reports whether data is one.
func samplesIn(data []byte) (begin int, samples []byte, is bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return 0, nil, false
	}
	seen := make(map[any]bool)
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || seen[name] || dec.Decode(&value) != nil {
			return 0, nil, false // and whoever reads it as something else says what is wrong
		}
		seen[name] = true
		if name == "samples" && string(value) != "null" {
			begin, samples = int(dec.InputOffset())-len(value), value
		}
	}
	if _, err := dec.Token(); err != nil {
		return 0, nil, false
	}
	_, err := dec.Token()
	return begin, samples, err == io.EOF && seen["eval"] && seen["status"]
}

// eachMember calls add with each sample of an archive.
func eachMember(file string, data []byte, add func(runText) error) error {
	at := place{file, 1, -1, -1}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return at.fault("%w", err)
	}
	z.RegisterDecompressor(zipZstd, func(r io.Reader) io.ReadCloser {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpackedBytes))
		if err != nil {
			return io.NopCloser(failing{err})
		}
		return d.IOReadCloser()
	})
	left := int64(maxUnpackedBytes)
	for _, member := range z.File {
		at.file = file + "/" + member.Name
		switch {
		case chunkMember.MatchString(member.Name):
			return at.fault("samples in chunks are not read; want what inspect log convert --to json makes of it")
		case !strings.HasPrefix(member.Name, "samples/") || strings.HasSuffix(member.Name, "/"):
			continue
		case !sampleMember.MatchString(member.Name):
			return at.fault("is no sample; want samples/ID_epoch_N.json")
		}
		at.run++
		text, err := unpack(member, left)
		left -= int64(len(text))
		if err == nil && left < 0 {
			err = fmt.Errorf("%w: its samples unpack to more than %d bytes", world.ErrTooLarge, maxUnpackedBytes)
		}
		if err != nil {
			return at.fault("%w", err)
		}
		if err := add(runText{place: at, json: text}); err != nil {
			return err
		}
	}
	return nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// unpack returns what a member holds, but not much more than most bytes.
func unpack(member *zip.File, most int64) ([]byte, error) {
	in, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(in, most+1))
}

// sampleRuns makes a run of a sample's messages, called ID.EPOCH, and one of the calls that are in its events alone,
// as those of sub-agents and those before a compaction are, called ID.EPOCH.more.
func sampleRuns(text runText, left *int) ([]runText, error) {
	fields, err := text.decode()
	if err != nil {
		return nil, err
	}
	id, err := label(fields, "id")
	epoch, err2 := label(fields, "epoch")
	if err != nil || err2 != nil || id == "" || epoch == "" {
		return nil, text.fault("want a sample with an id and an epoch")
	}
	attached, _ := fields["attachments"].(map[string]any)
	messages, err := messagesOf(fields)
	if err != nil {
		return nil, text.fault("%w", err)
	}
	for i, m := range messages {
		if messages[i], err = attach(m, attached, left); err != nil {
			return nil, text.atMessage(i).fault("%w", err)
		}
		if m, ok := messages[i].(map[string]any); ok && m["role"] == "user" {
			delete(m, "tool_call_id") // whose images these are
		}
	}
	e := events{counted: make(map[string]*tally), attached: attached, left: left}
	for _, m := range messages {
		fields, _ := m.(map[string]any)
		calls, _ := fields["tool_calls"].([]any)
		for _, c := range calls {
			e.tally(c).said++
		}
	}
	if err := e.read(fields["events"]); err != nil {
		return nil, text.fault("events: %w", err)
	}
	run := text
	run.fields = map[string]any{"id": id + "." + epoch, "messages": messages}
	if len(e.more) == 0 {
		return []runText{run}, nil
	}
	more := text
	more.fields = map[string]any{"id": id + "." + epoch + ".more", "messages": e.more}
	return []runText{run, more}, nil
}

// attach puts attachments where they are referred to.
func attach(v any, attached map[string]any, left *int) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		name, is := strings.CutPrefix(v, "attachment://")
		text, there := attached[name].(string)
		if !is || !there {
			return v, nil
		}
		if *left -= len(text); *left < 0 {
			return nil, fmt.Errorf("%w: attachments of more than %d bytes", world.ErrTooLarge, maxUnpackedBytes)
		}
		return text, nil
	case []any:
		for i := range v {
			if v[i], err = attach(v[i], attached, left); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v { // order cannot show
			if v[name], err = attach(v[name], attached, left); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// events reads the events of a sample.
type events struct {
	counted  map[string]*tally // by id, tool and arguments
	more     []any             // messages with the calls that the sample's messages do not hold
	attached map[string]any
	left     *int
}

// tally counts equal calls.
type tally struct {
	said    int // in the sample's messages, and not found in its events so far
	asked   int // in the model's answers, and not run so far
	further int // the same, of those that the sample's messages do not hold
}

func (e *events) tally(call any) *tally {
	fields, _ := call.(map[string]any)
	key, _ := canon.Marshal([]any{fields["id"], fields["function"], fields["arguments"]})
	if e.counted[string(key)] == nil {
		e.counted[string(key)] = new(tally)
	}
	return e.counted[string(key)]
}

// read takes the calls out of events, and of events in events.
func (e *events) read(value any) error {
	list, _ := value.([]any)
	for _, value := range list {
		event, _ := value.(map[string]any)
		switch event["event"] {
		case "model":
			output, _ := event["output"].(map[string]any)
			choices, _ := output["choices"].([]any)
			if len(choices) == 0 {
				continue
			}
			choice, _ := choices[0].(map[string]any)
			message, _ := choice["message"].(map[string]any)
			if err := e.asked(message); err != nil {
				return err
			}
		case "tool":
			if err := e.ran(event); err != nil {
				return err
			}
		}
		if err := e.read(event["events"]); err != nil {
			return err
		}
	}
	return nil
}

// asked takes the calls out of a model's answer.
func (e *events) asked(message map[string]any) error {
	if message["tool_calls"] == nil {
		return nil
	}
	calls, ok := message["tool_calls"].([]any)
	if !ok {
		return fmt.Errorf("tool_calls: want a list, not %s", shapeOf(message["tool_calls"]))
	}
	var unsaid []any
	for _, call := range calls {
		call, err := attach(call, e.attached, e.left)
		if err != nil {
			return err
		}
		t := e.tally(call)
		t.asked++
		if t.said > 0 {
			t.said--
			continue
		}
		t.further++
		unsaid = append(unsaid, call)
	}
	if len(unsaid) > 0 {
		e.more = append(e.more, map[string]any{"role": "assistant", "content": nil, "tool_calls": unsaid})
	}
	return nil
}

// ran takes a call out of the event that says what came of it.
func (e *events) ran(event map[string]any) error {
	for _, name := range []string{"arguments", "result"} {
		var err error
		if event[name], err = attach(event[name], e.attached, e.left); err != nil {
			return err
		}
	}
	t := e.tally(event)
	switch {
	case t.asked > t.further: // the messages hold it
		t.asked--
		return nil
	case t.asked > 0:
		t.asked--
		t.further--
	case t.said > 0: // there is no event of the answer that asked
		t.said--
		return nil
	default:
		call := map[string]any{"id": event["id"], "function": event["function"], "arguments": event["arguments"]}
		e.more = append(e.more, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}})
	}
	answer := map[string]any{"role": "tool", "tool_call_id": event["id"], "content": event["result"], "error": event["error"]}
	e.more = append(e.more, answer)
	return nil
}
