package journal

import (
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Engine is what runs reducers or policies, in a version: another may give other
// results.
type Engine struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Engines lists the engines that replay needs, by name. On disk it is a list of arrays of name and
// version.
type Engines []Engine

// Of returns the version of an engine, "" if it is not listed.
func (e Engines) Of(name string) string {
	for _, x := range e {
		if x.Name == name {
			return x.Version
		}
	}
	return ""
}

// MarshalCBOR returns the list.
func (e Engines) MarshalCBOR() ([]byte, error) {
	b := canon.AppendArray(nil, len(e))
	for _, x := range e {
		b = canon.AppendText(canon.AppendText(canon.AppendArray(b, 2), x.Name), x.Version)
	}
	return b, nil
}

// UnmarshalCBOR parses a list. It refuses one that is not in the order of its names.
func (e *Engines) UnmarshalCBOR(data []byte) error {
	r := canon.NewReader(data)
	list := Engines{}
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		r.ArrayOf(2)
		list = append(list, Engine{Name: r.Text(), Version: r.Text()})
	}
	if err := r.Close(); err != nil {
		return err
	}
	for i, x := range list[min(1, len(list)):] {
		if x.Name <= list[i].Name {
			return errors.New("engines are not listed by name, each once")
		}
	}
	*e = list
	return nil
}
