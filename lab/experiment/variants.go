package experiment

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// variantName is what variants may be called: it is in names of columns and files.
var variantName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// variants reads the variants; without any there is one, of the world as it is.
func (l *loader) variants() {
	n := l.at["variants"]
	if n == nil {
		l.spec.Rules = []Variant{{Name: "world", loaded: l.base, file: l.file()}}
		return
	}
	l.Entries(n, func(key, value *yaml.Node) {
		if !variantName.MatchString(key.Value) {
			l.Fault(key, "the variant %q: want a letter and up to 63 letters, digits, _ and -", key.Value)
			return
		}
		v := Variant{Name: key.Value, loaded: l.base, file: l.file(), params: make(map[string]any)}
		l.variant(&v, value)
		l.spec.Rules = append(l.spec.Rules, v)
	})
	if len(l.spec.Rules) == 0 && !l.Refused(n) {
		l.Fault(n, "variants: want at least one; without the key there is one, the world as it is")
	}
}

// file returns the world file that runs are made of; empty: they branch off.
func (l *loader) file() string {
	if l.spec.from != nil {
		return ""
	}
	name := "."
	_ = l.at["world"].Decode(&name) // which was read before
	return worldFile(l.path(name))
}

// variant reads what one variant changes: params, and at most one of a world file, a patch
// in a file, and what is set and removed here.
func (l *loader) variant(v *Variant, n *yaml.Node) {
	var world, patch, set, remove, params *yaml.Node
	node := func(to **yaml.Node) func(*yaml.Node) { return func(n *yaml.Node) { *to = n } }
	l.Mapping(n, map[string]func(*yaml.Node){"world": node(&world), "patch": node(&patch), "set": node(&set), "remove": node(&remove), "params": node(&params)})
	given := 0
	for _, x := range []bool{world != nil, patch != nil, set != nil || remove != nil} {
		if x {
			given++
		}
	}
	switch {
	case given > 1:
		l.Fault(n, "want one of world, patch, and set with remove")
	case world != nil:
		l.candidate(v, world)
	case patch != nil:
		l.patchFile(v, patch)
	case set != nil || remove != nil:
		l.ops(v, set, remove)
	}
	if params == nil || l.Refused(n) {
		return
	}
	l.Entries(params, func(key, value *yaml.Node) {
		if l.declared(key, &v.loaded, key.Value) {
			given := l.Value(value)
			l.fits(value, &v.loaded, key.Value, given)
			v.params[key.Value] = given
		}
		for _, varied := range l.spec.Params {
			if varied.Name == key.Value {
				l.Fault(key, "%s is varied under params, too: its points say what it is", key.Value)
			}
		}
	})
}

// candidate reads a whole world file.
func (l *loader) candidate(v *Variant, n *yaml.Node) {
	var name string
	if l.Text(&name)(n); l.Refused(n) {
		return
	}
	file := worldFile(l.path(name))
	loaded, err := local.Load(file, l.opts)
	switch {
	case errors.As(err, new(*source.Error)):
		l.Fault(n, "the variant %s is not valid: worldctl validate %s says where: %s", v.Name, file, firstLine(err))
	case err != nil:
		l.Fault(n, "the variant %s: there is no world file %q", v.Name, name)
	default:
		v.loaded, v.file = rules{loaded.Manifest, loaded.Contents}, file
	}
}

// patchFile reads a patch, as worldctl diff --patch prints it.
func (l *loader) patchFile(v *Variant, n *yaml.Node) {
	var name string
	if l.Text(&name)(n); l.Refused(n) {
		return
	}
	data := l.content(n, source.MaxWorldBytes, "a patch is not larger than a world.yaml")
	if l.Refused(n) {
		return
	}
	patch, err := manifest.ParsePatchJSON(data)
	if err != nil {
		l.Fault(n, "the variant %s: %s: a patch is as worldctl diff A B --patch prints it", v.Name, oneLine(err))
		return
	}
	l.apply(v, n, patch, nil)
}

// ops reads changes of the manifest that stand in the experiment, by JSON pointers.
func (l *loader) ops(v *Variant, set, remove *yaml.Node) {
	base, err := l.base.manifest.Hash()
	if err != nil {
		l.Fault(l.Root(), "%s", oneLine(err))
		return
	}
	patch, at, values := &manifest.Patch{Base: base}, set, make(map[string]*yaml.Node)
	if set != nil {
		l.Entries(set, func(key, value *yaml.Node) {
			values[key.Value] = value
			patch.Ops = append(patch.Ops, manifest.Op{Op: manifest.OpSet, Path: key.Value, Value: l.Data(value)})
		})
	}
	if remove != nil {
		at = remove
		var paths []string
		l.Texts(&paths)(remove)
		for _, path := range paths {
			patch.Ops = append(patch.Ops, manifest.Op{Op: manifest.OpRemove, Path: path})
		}
	}
	if l.Err() == nil {
		l.apply(v, at, patch, values)
	}
}

// apply has a variant be what a patch at a node makes of the world; values are the nodes of
// those that it sets here, by their pointers.
func (l *loader) apply(v *Variant, n *yaml.Node, patch *manifest.Patch, values map[string]*yaml.Node) {
	next, err := patch.Apply(l.base.manifest)
	if errors.Is(err, manifest.ErrOtherBase) {
		l.Fault(n, "the variant %s: %s: make it for the world of the experiment: worldctl diff A B --patch", v.Name, oneLine(err))
		return
	}
	if err != nil {
		l.Fault(n, "the variant %s is not valid: %s", v.Name, oneLine(err))
		return
	}
	for _, hash := range next.Contents() {
		if _, ok := l.base.contents[hash]; !ok {
			l.Fault(n, "the variant %s names the content %s, which the world has not: write a whole world.yaml, and world: FILE", v.Name, hash)
			return
		}
	}
	v.loaded.manifest, v.file = next, ""
	l.sameKinds(v, n, values)
}

// sameKinds reports params that a patch sets to another kind of value than the world has, of
// reducers whose code is the same.
func (l *loader) sameKinds(v *Variant, n *yaml.Node, values map[string]*yaml.Node) {
	for _, name := range slices.Sorted(maps.Keys(v.loaded.manifest.Reducers)) {
		was, there := l.base.manifest.Reducers[name]
		is := v.loaded.manifest.Reducers[name]
		if !there || was.Source != is.Source {
			continue
		}
		old, err := paramsOf(&was)
		params, failed := paramsOf(&is)
		if err != nil || failed != nil {
			continue // the manifest is not valid, and will be refused
		}
		otherKind(name, old, params, func(param, was, is string) {
			l.Fault(setAt(n, values, param), "the variant %s: %s is %s in world.yaml, and not %s", v.Name, param, was, is)
		})
	}
}

// setAt returns the node of the value that sets a param; n: nobody knows which does.
func setAt(n *yaml.Node, values map[string]*yaml.Node, param string) *yaml.Node {
	reducer, path, _ := splitParam(param)
	pointer := "/reducers/" + reducer + "/params"
	for _, step := range append(path, "") {
		if at, ok := values[pointer]; ok {
			return at
		}
		pointer += "/" + step
	}
	return n
}

// rulesOf makes the rules of a variant at a point.
func (s *Spec) rulesOf(variant, point int) (rules, error) {
	v := &s.Rules[variant]
	out := v.loaded
	for name, value := range s.params(&Planned{Variant: variant, Point: point}) {
		if !hasParam(out.manifest, name) {
			return out, fmt.Errorf("it declares no param %s, which the experiment varies", name)
		}
		next, err := setParam(out.manifest, name, value)
		if err != nil {
			return out, err
		}
		out.manifest = next
	}
	return out, valid(out.manifest)
}

// params returns the params of a run, by name: those of its variant and of its point.
func (s *Spec) params(p *Planned) map[string]any {
	set := make(map[string]any)
	maps.Copy(set, s.Rules[p.Variant].params)
	for i, param := range s.Params {
		set[param.Name] = s.Values[p.Point].Values[i]
	}
	return set
}

// hasParam reports whether a manifest declares a param.
func hasParam(m *manifest.Manifest, name string) bool {
	reducer, path, ok := splitParam(name)
	if !ok {
		return false
	}
	r := m.Reducers[reducer]
	tree, err := paramsOf(&r)
	if err != nil {
		return false
	}
	_, ok = lookUp(tree, path)
	return ok
}
