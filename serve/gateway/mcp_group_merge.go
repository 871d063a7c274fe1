package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// listKeys are the lists of servers that a group shows as one: by method, where in the result they are.
var listKeys = map[string]string{ //nolint:gochecknoglobals // a table
	methodTools: "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates", methodTasks: "tasks",
}

// take takes what a server has answered, or what is answered in its place, and answers the client once that is possible: a
// request that describes servers when all have answered, and another one with the first result. It is called with mu held.
func (g *Group) take(a *groupAsk, of *member, result json.RawMessage, line []byte) {
	i := slices.Index(a.waits, of)
	if i < 0 || g.asked[a.m.key] != a {
		return
	}
	a.waits = slices.Delete(a.waits, i, i+1)
	all := describes(a.m.method) || listKeys[a.m.method] != ""
	switch {
	case result == nil:
		a.faults, a.refused = append(a.faults, line), a.refused || of.why == nil && !of.late
	case all:
		a.results[of] = result
	case a.m.method == methodCall:
		g.addTask(of, result)
	}
	if len(a.waits) > 0 && (all || result == nil) {
		return
	}
	delete(g.asked, a.m.key)
	switch {
	case all:
		line = a.allFaults()
	case result == nil:
		line = a.faults[len(a.faults)-1]
	}
	if all && len(a.results) > 0 && (a.m.method != methodDiscover || !a.refused) { // else the client asks in the older way
		line = g.merge(a)
	}
	g.out.put(line, []byte("\n"))
}

// addTask notes whose a task is that a call has become.
func (g *Group) addTask(of *member, result json.RawMessage) {
	var said struct {
		ID   string `json:"taskId"`
		Task struct {
			ID string `json:"taskId"`
		} `json:"task"`
	}
	_ = json.Unmarshal(result, &said) // of another form: it is none
	if id := cmp.Or(said.Task.ID, said.ID); id != "" {
		g.owner(kindTask, id, of)
	}
}

// owner returns whose a name is, which a server uses: that of the first that has used it.
func (g *Group) owner(kind, name string, by *member) *member {
	n := named{kind, name}
	if g.owners[n] == nil && len(g.owners) < maxListed {
		g.owners[n] = by
	}
	return cmp.Or(g.owners[n], by)
}

// allFaults returns the errors of all servers as one, which is the last with all their texts.
func (a *groupAsk) allFaults() []byte {
	var last *mcpMessage
	var texts []string
	for _, line := range a.faults {
		if m, err := readServer(line); err == nil { // it is one
			var said struct {
				Message string `json:"message"`
			}
			_ = json.Unmarshal(m.fault, &said) // of another form: it says nothing
			last, texts = m, append(texts, said.Message)
		}
	}
	if len(texts) < 2 {
		return bytes.Join(a.faults, nil)
	}
	slices.Sort(texts) // servers end in any order
	return response(a.m.id, "error", with(last.fault, quoted(strings.Join(slices.Compact(texts), "; ")), "message"))
}

// merge returns what several servers have answered as the answer of one.
func (g *Group) merge(a *groupAsk) []byte {
	merged := make(map[string]json.RawMessage)
	var items []json.RawMessage
	list, next := listKeys[a.m.method], make(map[string]string)
	said := groupSays{capabilities: make(map[string]map[string]json.RawMessage)}
	for _, of := range g.members {
		var fields map[string]json.RawMessage
		if a.results[of] == nil || json.Unmarshal(a.results[of], &fields) != nil {
			if list == "" && of.why != nil {
				said.instructions += of.gone().Error() + "\n"
			}
			continue
		}
		if list == "" {
			said.add(of, fields)
		} else {
			items = append(items, g.items(of, fields[list])...)
			var cursor string
			if json.Unmarshal(fields["nextCursor"], &cursor) == nil && cursor != "" {
				next[of.prefix] = cursor
			}
		}
		maps.Copy(fields, merged) // the first counts
		merged = fields
	}
	set := map[string]any{list: items}
	if list == "" {
		set = said.fields(g.Name)
	} else if delete(merged, "nextCursor"); len(next) > 0 {
		set["nextCursor"] = string(encoded(next))
	}
	for key, value := range set { // order cannot show: a map is built from a map
		if _, is := merged[key]; is || key == "nextCursor" || key == "instructions" {
			merged[key] = encoded(value)
		}
	}
	return response(a.m.id, "result", encoded(merged))
}

// items returns the items of a server's list as the client sees them.
func (g *Group) items(of *member, list json.RawMessage) (out []json.RawMessage) {
	var items []map[string]json.RawMessage
	_ = json.Unmarshal(list, &items) // of another form: there are none
	for _, item := range items {
		var name, uri, task string
		_, template := item["uriTemplate"]
		switch {
		case json.Unmarshal(item["uri"], &uri) == nil:
			if g.owner(kindURI, uri, of) != of {
				continue
			}
		case json.Unmarshal(item["taskId"], &task) == nil:
			if g.owner(kindTask, task, of) != of {
				continue
			}
		case !template && json.Unmarshal(item["name"], &name) == nil:
			item["name"] = quoted(g.show(of, name))
		}
		out = append(out, encoded(item))
	}
	return out
}

// groupSays is what servers say of themselves.
type groupSays struct {
	version, instructions string
	versions              []string // that all speak
	capabilities          map[string]map[string]json.RawMessage
}

func (s *groupSays) add(of *member, fields map[string]json.RawMessage) {
	var said struct {
		Version      string                                `json:"protocolVersion"`
		Versions     []string                              `json:"supportedVersions"`
		Instructions string                                `json:"instructions"`
		Capabilities map[string]map[string]json.RawMessage `json:"capabilities"`
	}
	for name, into := range map[string]any{ // order cannot show: each for itself
		"protocolVersion": &said.Version, "supportedVersions": &said.Versions, "instructions": &said.Instructions, "capabilities": &said.Capabilities,
	} {
		_ = json.Unmarshal(fields[name], into) // of another form: it does not say
	}
	if s.version == "" || said.Version < s.version {
		s.version = said.Version
	}
	if s.versions == nil {
		s.versions = said.Versions
	}
	s.versions = slices.DeleteFunc(s.versions, func(v string) bool { return !slices.Contains(said.Versions, v) })
	if said.Instructions != "" {
		s.instructions += fmt.Sprintf("%s__*: %s\n", of.prefix, said.Instructions)
	}
	for name, can := range said.Capabilities { // order cannot show: a map is built from a map
		if s.capabilities[name] == nil {
			s.capabilities[name] = make(map[string]json.RawMessage)
		}
		maps.Copy(s.capabilities[name], can)
	}
}

// fields returns what is said as the fields of an answer.
func (s *groupSays) fields(name string) map[string]any {
	if s.capabilities["tools"] == nil {
		s.capabilities["tools"] = make(map[string]json.RawMessage)
	}
	s.capabilities["tools"]["listChanged"] = json.RawMessage("true") // a server that is late
	return map[string]any{
		"protocolVersion": s.version, "supportedVersions": s.versions, "capabilities": s.capabilities, "instructions": s.instructions,
		"serverInfo": map[string]string{"name": name, "version": "1"},
	}
}
