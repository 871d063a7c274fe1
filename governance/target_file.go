package governance

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Operations of file effects.
const (
	FileRead   = "read"
	FileWrite  = "write"
	FileAppend = "append"
	FileList   = "list"
)

// DefaultFileBytes is how many bytes a file effect reads or writes at most
// where its config does not say.
const DefaultFileBytes = 1 << 20

// Greatest lengths of paths, those of the file systems in use.
const (
	maxPathBytes    = 4096
	maxSegmentBytes = 255
)

// Codes of file effects.
const (
	CodeBadPath          Code = "bad_path"           // a path that is not plain, relative and below root
	CodeRootNotAllowed   Code = "root_not_allowed"   // the capability's root is not config.root or above it
	CodeAccessNotAllowed Code = "access_not_allowed" // the capability gives no such access
)

// FileTarget is what a file effect would do.
type FileTarget struct {
	Root     string `cbor:"root"`      // cleaned and slash-separated; absolute, or below the world's directory; "." is that
	Op       string `cbor:"op"`        // FileRead, FileWrite, FileAppend or FileList
	Path     string `cbor:"-"`         // below Root; "." is Root itself, for FileList only
	Data     []byte `cbor:"-"`         // FileWrite and FileAppend
	MaxBytes uint64 `cbor:"max_bytes"` // greatest size of what is read or written
}

// Resource returns the name of the file as the manifest sees it.
func (t *FileTarget) Resource() string { return path.Join(t.Root, t.Path) }

// ParseFile reads the config and the params of a file effect:
//
//	config {root, op?, max_bytes?}
//	params {op, path, data?}
//
// A path is refused rather than cleaned: segments between single slashes, none
// of them ".", ".." or ".world", without anything that another system or a
// later decoding could take for a separator. The error is a *CapError.
func ParseFile(config, params canon.Raw) (*FileTarget, error) {
	t, err := parseFileConfig(config)
	if err != nil {
		return nil, err
	}
	fixed := t.Op
	given, err := parseFileParams(params)
	switch {
	case err != nil:
		return nil, err
	case given.op == "":
	case fixed != "" && given.op != fixed:
		return nil, capErrorf(CodeParamNotAllowed, "op is %q, config.op is %q", shortened(given.op), fixed)
	default:
		t.Op = given.op
	}
	t.Path, t.Data = given.path, given.data
	switch t.Op {
	case FileRead, FileList:
		if given.hasData {
			return nil, capErrorf(CodeParamNotAllowed, "data is not for op %q", t.Op)
		}
	case FileWrite, FileAppend:
		if !given.hasData {
			return nil, capErrorf(CodeBadParams, "data is missing for op %q", t.Op)
		}
	default:
		return nil, capErrorf(CodeBadParams, "op is %q, not read, write, append or list", shortened(t.Op))
	}
	if t.Op == FileList {
		if t.Path = strings.TrimSuffix(t.Path, "/"); given.path == "" || given.path == "./" {
			t.Path = "."
		}
	}
	if t.Op != FileList || t.Path != "." {
		if fault := checkPath(t.Path); fault != "" {
			return nil, capErrorf(CodeBadPath, "path %q %s", shortened(given.path), fault)
		}
	}
	if size := uint64(len(t.Data)); size > t.MaxBytes {
		return nil, capErrorf(CodeTooLarge, "data has %d bytes, config.max_bytes is %d", size, t.MaxBytes)
	}
	return t, nil
}

// Allowed says whether a capability of type file covers t: nil, or the bound
// that t exceeds.
func (t *FileTarget) Allowed(p *manifest.CapParams) *CapError {
	if !above(p.Root, t.Root) {
		return capErrorf(CodeRootNotAllowed, "root %q is not in %q", t.Root, p.Root)
	}
	access := "read"
	if t.Op == FileWrite || t.Op == FileAppend {
		access = "write"
	}
	if !slices.Contains(p.Access, access) {
		return capErrorf(CodeAccessNotAllowed, "op %q needs %s access to %q", t.Op, access, t.Root)
	}
	if size := uint64(len(t.Data)); p.MaxBytes > 0 && size > p.MaxBytes {
		return capErrorf(CodeTooLarge, "data has %d bytes, the capability's max_bytes is %d", size, p.MaxBytes)
	}
	return nil
}

func parseFileConfig(config canon.Raw) (*FileTarget, error) {
	t := new(FileTarget)
	if err := decodeConfig(config, t); err != nil {
		return nil, err
	}
	root, ok := cleanRoot(t.Root)
	if !ok {
		return nil, capErrorf(CodeBadConfig, "root %q is not a directory's path without .. and .world", shortened(t.Root))
	}
	switch t.Op {
	case "", FileRead, FileWrite, FileAppend, FileList:
	default:
		return nil, capErrorf(CodeBadConfig, "op is %q, not read, write, append or list", shortened(t.Op))
	}
	t.Root, t.MaxBytes = root, cmp.Or(t.MaxBytes, DefaultFileBytes)
	return t, nil
}

type fileParams struct {
	op, path string
	data     []byte
	hasData  bool
}

func parseFileParams(params canon.Raw) (p fileParams, err error) {
	if err := canon.Valid(params); err != nil {
		return p, capErrorf(CodeBadParams, "params: %v", err)
	}
	r := canon.NewReader(params)
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		switch name := r.Text(); {
		case name == "op":
			p.op = r.Text()
		case name == "path":
			p.path = r.Text()
		case name == "data" && r.Kind() == canon.KindBytes:
			p.data, p.hasData = r.Bytes(), true
		case name == "data":
			p.data, p.hasData = r.TextBytes(), true
		default:
			return p, capErrorf(CodeParamNotAllowed, "file effects have no param %q", shortened(name))
		}
	}
	if err := r.Close(); err != nil {
		return p, capErrorf(CodeBadParams, "want a map of op, path and data: %v", err)
	}
	return p, nil
}

// decodeConfig decodes the config of an effect, which may be absent.
func decodeConfig(config canon.Raw, v any) error {
	if len(config) == 0 {
		return nil
	}
	err := canon.Valid(config)
	if err == nil {
		err = canon.UnmarshalTrusted(config, v)
	}
	if err != nil {
		return capErrorf(CodeBadConfig, "config: %v", err)
	}
	return nil
}

// cleanRoot returns the one way to write the name of a directory, absolute or
// below the world's, and whether there is one.
func cleanRoot(root string) (string, bool) {
	if root == "" || len(root) > maxPathBytes || strings.ContainsFunc(root, foreign) {
		return "", false
	}
	for segment := range strings.SplitSeq(root, "/") {
		if segment == ".." || strings.EqualFold(segment, ".world") {
			return "", false
		}
	}
	return path.Clean(root), true
}

// above reports whether root is, by whole segments, dir or above it.
func above(root, dir string) bool {
	root, ok := cleanRoot(root)
	switch {
	case !ok || path.IsAbs(root) != path.IsAbs(dir):
		return false
	case root == "." || root == "/" || root == dir:
		return true
	default:
		return strings.HasPrefix(dir, root+"/")
	}
}

// checkPath returns what is wrong with a path below a root, or nothing.
func checkPath(p string) string {
	switch {
	case p == "":
		return "is empty"
	case len(p) > maxPathBytes:
		return "is too long"
	case strings.ContainsFunc(p, foreign) || strings.Contains(p, ":"):
		return `holds a backslash, a colon or a control character`
	}
	for _, code := range []string{"%2e", "%2f", "%5c", "%00"} {
		if strings.Contains(strings.ToLower(p), code) {
			return "holds an encoded separator"
		}
	}
	for segment := range strings.SplitSeq(p, "/") {
		switch {
		case segment == "":
			return "is absolute or has an empty segment"
		case len(segment) > maxSegmentBytes:
			return "has a segment that is too long"
		case strings.EqualFold(segment, ".world"):
			return "leads into the world's own directory"
		case strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " "):
			return `has a segment that ends in "." or a space`
		case deviceName(segment):
			return "has the name of a device for a segment"
		}
	}
	return ""
}

// foreign reports characters that no path has: controls, and what some systems
// take for a slash.
func foreign(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\\' }

// deviceName reports whether Windows takes a name for a device, which it does
// whatever the case and the extension.
func deviceName(segment string) bool {
	base, _, _ := strings.Cut(strings.ToLower(segment), ".")
	switch base = strings.TrimRight(base, " "); base {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	port, found := strings.CutPrefix(base, "com")
	if !found {
		port, found = strings.CutPrefix(base, "lpt")
	}
	return found && (len(port) == 1 && port >= "0" && port <= "9" || port == "¹" || port == "²" || port == "³")
}

func fileAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseFile(config, params) },
		uses:  func(u Unit) bool { return u == UnitCalls || u == UnitBytes },
		reads: func(config, params canon.Raw) bool {
			t, err := ParseFile(config, params)
			return err == nil && (t.Op == FileRead || t.Op == FileList)
		},
		fixed: func(config canon.Raw, p *manifest.CapParams) *CapError {
			t, err := parseFileConfig(config)
			if err != nil {
				return nil
			}
			if t.Op == "" && !slices.Contains(p.Access, "read") {
				t.Op = FileWrite
			}
			return t.Allowed(p)
		},
		needs: func(config canon.Raw) (Needs, error) {
			root, _, err := textOf(config, "root")
			return Needs{Root: path.Clean(root)}, err
		},
	}
}
