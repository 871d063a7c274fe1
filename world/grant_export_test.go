package world

// LookedAt returns how many open intents are looked at to find that none can be attempted.
func (w *World) LookedAt() int {
	l := line{effects: &w.k.effects}
	if e, _, _ := l.next(); e != nil {
		return -1
	}
	return l.at
}
