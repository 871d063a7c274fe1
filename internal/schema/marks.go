package schema

// marks are the members and items of one value that were evaluated, of which
// unevaluatedProperties and unevaluatedItems ask. A nil one takes none.
type marks struct {
	names      map[string]bool
	indexes    map[int]bool
	allMembers bool
	allItems   bool
}

func (m *marks) member(name string) {
	if m == nil {
		return
	}
	if m.names == nil {
		m.names = make(map[string]bool)
	}
	m.names[name] = true
}

func (m *marks) item(i int) {
	if m == nil {
		return
	}
	if m.indexes == nil {
		m.indexes = make(map[int]bool)
	}
	m.indexes[i] = true
}

// items marks the first n items.
func (m *marks) items(n int) {
	for i := range n {
		m.item(i)
	}
}

func (m *marks) hasMember(name string) bool { return m.allMembers || m.names[name] }

func (m *marks) hasItem(i int) bool { return m.allItems || m.indexes[i] }

func (m *marks) len() uint64 { return uint64(len(m.names) + len(m.indexes)) }

// add adds what another evaluation of the same value marked.
func (m *marks) add(more *marks) {
	for name := range more.names { // order cannot show: a set
		m.member(name)
	}
	for i := range more.indexes { // order cannot show: a set
		m.item(i)
	}
	m.allMembers = m.allMembers || more.allMembers
	m.allItems = m.allItems || more.allItems
}
