package worldctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// The template that a world for agents begins with, and the directory that it gets where no
// world is found.
const (
	gatewayTemplate = "gateway"
	gatewayDir      = "worldkernel"
)

func newAgentCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "agent"},
		newAgentRunCommand(c), newAgentResumeCommand(c), newAgentReplayCommand(c), newAgentForkCommand(c), newAgentDoctorCommand(c), newAgentEnvCommand(c), newAgentListCommand(c), newAgentShowCommand(c), newAgentCallsCommand(c), newAgentAttachCommand(c))
}

// agentWorld finds the world of agents: that of -w, the nearest upwards, or the one in gatewayDir
// of this directory. Where there is none it is made, if make says so.
func (c *cli) agentWorld(makes bool) error {
	if c.owned != nil {
		c.world = c.owned.Dir()
		return nil
	}
	if c.world != "" || c.storeURL() != "" {
		if _, err := os.Stat(filepath.Join(c.world, local.ManifestFile)); c.world == "" || err == nil || !makes {
			return nil
		}
	} else {
		dir, err := local.Find(c.path("."))
		if !errors.Is(err, local.ErrNoWorld) {
			c.world = dir
			return err
		}
		c.world = c.path(gatewayDir)
	}
	switch _, err := os.Stat(filepath.Join(c.world, local.ManifestFile)); {
	case err == nil:
		return nil
	case !makes:
		return hinted(fmt.Errorf("%s: %w", c.path("."), local.ErrNoWorld), "worldctl agent run -- COMMAND makes one")
	}
	files, err := examples.Files(gatewayTemplate)
	if err != nil {
		return err
	}
	// All of it at once: killed in the midst, the next run makes it.
	err = local.CreateNew(c.world, files, local.CreateOptions{}, c.options(), func(*local.World) error { return nil })
	if err != nil {
		if _, there := os.Stat(filepath.Join(c.world, local.ManifestFile)); there == nil {
			return nil // another process was faster
		}
		return err
	}
	c.note("note: made a world in %s: its world.yaml says what agents may do", shellWord(c.world))
	return nil
}

// isGateway reports whether agents talk to a world: it has the reducer of their sessions.
func isGateway(lw *local.World) (is bool) {
	lw.View(func(m *world.Moment) {
		r := m.Manifest().Reducers[recorder.Name]
		is = r.Engine == manifest.EngineGo && r.Name == recorder.Name
	})
	return is
}

// session is a session of an agent as the world has it.
type session struct {
	Name string `json:"name"`
	recorder.Session
	Waits []receipt.Key `json:"waits,omitempty"` // in a list: what a person has to decide about
}

// sessions returns all sessions of a world, in the order of their names.
func sessions(lw *local.World) (all []session, err error) {
	lw.View(func(m *world.Moment) {
		for _, v := range m.Cells() {
			if v.Cell.Reducer != recorder.Name {
				continue
			}
			s := session{Name: v.Cell.Key}
			if len(v.State) > 0 { // else it has begun, and has handled nothing yet
				var bad error
				s.Session, bad = reducer.Decode[recorder.Session](v.State)
				err = errors.Join(err, bad)
			}
			all = append(all, s)
		}
	})
	slices.SortFunc(all, func(a, b session) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// findSession returns a session by its name; of a world with one session it needs none.
func findSession(lw *local.World, args []string) (*session, error) {
	all, err := sessions(lw)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 && len(all) == 1 {
		return &all[0], nil
	}
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].Name; len(args) > 0 && names[i] == args[0] {
			return &all[i], nil
		}
	}
	if len(all) == 0 {
		return nil, hinted(errors.New("no agent has run in this world yet"), "worldctl agent run -- COMMAND")
	}
	if len(args) == 0 {
		return nil, usagef("worldctl agent list", "name one of the sessions: %s", strings.Join(names, ", "))
	}
	return nil, usagef("worldctl agent list", "there is no session %q; there are: %s", args[0], strings.Join(names, ", "))
}

// newSession returns the name of a session that there is not yet: that of the program, with a
// number from the second one on, if it takes that.
func newSession(lw *local.World, program string, takes func(name string) bool) (string, error) {
	all, err := sessions(lw)
	if err != nil {
		return "", err
	}
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if !slices.ContainsFunc(all, func(s session) bool { return s.Name == name }) && takes(name) {
			return name, nil
		}
	}
}

// agentError is the exit code of an agent, which becomes that of this process. It has said itself what went wrong.
type agentError struct{ code int }

func (e *agentError) Error() string { return "" }

func (e *agentError) fault() error { return &fault{err: e, code: e.code} }

// endedBy says in a sentence how an agent ended.
func endedBy(code int) string {
	if code == 0 {
		return "ended well"
	}
	return fmt.Sprintf("ended with exit code %d", code)
}
