package worldctl

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/lab/scenario"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// formJUnit is a form of the answer of test alone.
const formJUnit = "junit"

// testsDir is where a world's scenarios are.
const testsDir = "tests"

type testedScenario struct {
	File     string   `json:"file"`
	Scenario string   `json:"scenario"`
	OK       bool     `json:"ok"`
	Faults   []string `json:"faults"`

	took time.Duration
}

type testAnswer struct {
	OK        bool             `json:"ok"`
	Passed    int              `json:"passed"`
	Failed    int              `json:"failed"`
	Scenarios []testedScenario `json:"scenarios"`
}

func newTestCommand(c *cli) *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use: "test [FILE]...",
		RunE: func(cmd *cobra.Command, args []string) error {
			only, err := regexp.Compile(run)
			if err != nil {
				return usagef("--run takes a regular expression", "--run: %w", err)
			}
			return c.test(cmd, args, only)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "only scenarios whose name fits this regular `EXPRESSION`")
	return cmd
}

// readScenarios reads a file of scenarios, which may be somebody else's.
func readScenarios(path string) ([]byte, error) { return file.ReadRegular(path, source.MaxWorldBytes) }

// test plays the scenarios of files, and prints what came of them.
func (c *cli) test(cmd *cobra.Command, files []string, only *regexp.Regexp) error {
	dir, err := c.testedDir(files)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if files, err = filepath.Glob(filepath.Join(dir, testsDir, "*.yaml")); err != nil {
			return err
		}
	}
	loaded, err := local.Read(filepath.Join(dir, local.ManifestFile), c.options())
	if err != nil {
		return toCorrect(err, filepath.Join(dir, local.ManifestFile))
	}
	var answer testAnswer
	known := 0
	for _, file := range files {
		data, err := readScenarios(file)
		if err != nil {
			return usagef("worldctl test takes files of scenarios", "%w", err)
		}
		all, err := scenario.Read(file, data)
		if err != nil {
			return usagef("docs/testing-worlds.md says what a scenario is", "%w", err)
		}
		known += len(all)
		for i := range all {
			if !only.MatchString(all[i].Name) {
				continue
			}
			began := time.Now()
			faults, err := scenario.Play(cmd.Context(), loaded, &all[i], c.options())
			if err != nil {
				return unplayed(fmt.Errorf("%s: %s: %w", file, all[i].Name, err))
			}
			answer.add(testedScenario{File: file, Scenario: all[i].Name, Faults: faults, took: time.Since(began)})
		}
	}
	switch {
	case answer.Scenarios == nil && known > 0:
		return usagef("worldctl test --run '' plays all", "no scenario has a name that matches %q, of %d", only, known)
	case answer.Scenarios == nil:
		return usagef("put scenarios into "+filepath.Join(dir, testsDir), "there is no scenario to play")
	}
	return c.tested(&answer)
}

// unplayed says what became of a scenario that was interrupted.
func unplayed(err error) error {
	if errors.Is(err, context.Canceled) {
		return hinted(err, "its world was thrown away: type it again")
	}
	return err
}

func (a *testAnswer) add(s testedScenario) {
	if s.OK = len(s.Faults) == 0; s.OK {
		a.Passed++
		s.Faults = []string{}
	} else {
		a.Failed++
	}
	a.Scenarios = append(a.Scenarios, s)
	a.OK = a.Failed == 0
}

// testedDir returns the directory of the world that is tested: that of -w, or the
// nearest one with a world.yaml, upwards from the first file or from here.
func (c *cli) testedDir(files []string) (string, error) {
	if c.world != "" {
		return c.world, nil
	}
	from := "."
	if len(files) > 0 {
		from = filepath.Dir(files[0])
	}
	at, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, local.ManifestFile)); err == nil {
			return relative(at), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", usagef("name its directory: worldctl -w DIR test", "there is no %s here, nor in a directory above", local.ManifestFile)
		}
		at = up
	}
}

// errScenarios is the end of a test that failed: the answer says why.
var errScenarios = errors.New("not as expected")

func (c *cli) tested(a *testAnswer) error {
	var err error
	if !a.OK {
		err = fmt.Errorf("%d of %d scenarios: %w", a.Failed, a.Failed+a.Passed, errScenarios)
	}
	if c.output == formJUnit {
		return errors.Join(c.junit(a), err)
	}
	return errors.Join(c.object("test", a, func() {
		for _, s := range a.Scenarios {
			fmt.Fprintf(c.stdout, "%s  %s  %s\n", map[bool]string{true: "ok    ", false: "FAILED"}[s.OK], s.File, s.Scenario)
			for _, fault := range s.Faults {
				fmt.Fprintf(c.stdout, "        %s\n", fault)
			}
		}
	}), err)
}

// junit prints an answer as the XML that CI systems read.
func (c *cli) junit(a *testAnswer) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *failure `xml:"failure"`
	}
	type suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	s := suite{Name: "worldctl", Tests: a.Passed + a.Failed, Failures: a.Failed}
	for _, x := range a.Scenarios {
		one := testCase{Class: x.File, Name: x.Scenario, Time: fmt.Sprintf("%.3f", x.took.Seconds())}
		if !x.OK {
			one.Failure = &failure{x.Faults[0], strings.Join(slices.Clone(x.Faults), "\n")}
		}
		s.Cases = append(s.Cases, one)
	}
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.document(), "%s%s\n", xml.Header, text)
	return err
}
