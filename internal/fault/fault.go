// Package fault names the faults that the simulations strike worlds with, and counts
// how often each struck. It is for tests: see docs/testing.md.
package fault

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Simulation is the name of a simulation with faults.
type Simulation string

// The simulations.
const (
	Worlds   Simulation = "worlds"   // world/worldtest: the same journal, whatever happens
	Effects  Simulation = "effects"  // world/worldtest: an outside that remembers
	Lives    Simulation = "lives"    // world/worldtest/twice: any history, and a bank that counts
	Programs Simulation = "programs" // world/worldtest/twice: programs that a real host starts
	Disks    Simulation = "disks"    // world/worldtest/disk: a world over the store, and what a disk does
	Kills    Simulation = "kills"    // worldctl/kill: the program, killed
)

// Kind is a kind of fault.
type Kind struct {
	Name string
	Says string // what happens
	By   []Simulation
}

// Struck counts how often faults struck in a simulation. It is safe for concurrent use.
type Struck struct {
	by Simulation

	mu    sync.Mutex
	times map[string]int
}

// NewStruck returns a count of zero of each fault of a simulation.
func NewStruck(by Simulation) *Struck {
	s := &Struck{by: by, times: make(map[string]int)}
	for _, k := range kinds() {
		if slices.Contains(k.By, by) {
			s.times[k.Name] = 0
		}
	}
	return s
}

// Count notes that a fault struck. It panics where the table does not say that this
// simulation strikes with it.
func (s *Struck) Count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.times[name]; !known {
		panic(fmt.Sprintf("fault: %s does not strike with %q: see internal/fault", s.by, name))
	}
	s.times[name]++
}

// Never returns the faults that have not struck, in the order of the table.
func (s *Struck) Never() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range kinds() {
		if times, mine := s.times[k.Name]; mine && times == 0 {
			names = append(names, k.Name)
		}
	}
	return names
}

// String is the table: a line for each fault, and how often it struck.
func (s *Struck) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%9s  fault\n", "struck")
	for _, k := range kinds() {
		if times, mine := s.times[k.Name]; mine {
			fmt.Fprintf(&b, "%9d  %s\n", times, k.Name)
		}
	}
	return b.String()
}
