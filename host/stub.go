package host

import (
	"errors"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// newStub returns the factory of one Host's stub adapters, whose scripts are run by
// the engines of its manifest, at their top level within bounds.
func newStub(engines manifest.Engines, within *reducer.Bounds) Factory {
	tables, scripts := make(shared[*Recording]), make(shared[*script])
	var rest *reducer.Bounds // of those that are not made yet
	if within != nil {
		b := *within
		rest = &b
	}
	return func(s Setup) (Adapter, error) {
		var config struct {
			Answers string `cbor:"answers"`
			Script  string `cbor:"script"`
		}
		if err := s.Decode(&config); err != nil {
			return nil, err
		}
		switch {
		case config.Answers != "" && config.Script == "":
			r, err := tables.get(s, "answers", func(data []byte) (*Recording, error) { return readRecording(config.Answers, data, stubLines()) })
			return &recorded{Recording: r}, err
		case config.Script != "" && config.Answers == "":
			return scripts.get(s, "script", func(data []byte) (*script, error) { return compileScript(engines, config.Script, data, rest) })
		default:
			return nil, errors.New("config: want either answers or script")
		}
	}
}
