package manifest

import "slices"

// GovernedBy returns a manifest that says of what may be done what another one does:
// the policies, capabilities and budgets of that, the grants and budgets of its
// reducers, the classes and costs of its effects. What only one of the two declares
// is as it was, but for grants of capabilities that there are no more.
func (m *Manifest) GovernedBy(by *Manifest) (*Manifest, error) {
	encoded, err := m.Encode()
	if err != nil {
		return nil, err
	}
	next, err := Decode(encoded) // a copy
	if err != nil {
		return nil, err
	}
	next.Policies, next.Caps, next.Budget = by.Policies, by.Caps, by.Budget
	for name, r := range next.Reducers { // order cannot show: each by itself
		if other, ok := by.Reducers[name]; ok {
			r.Grants, r.Budget = other.Grants, other.Budget
		} else {
			r.Grants = slices.DeleteFunc(r.Grants, func(name string) bool { _, ok := by.Caps[name]; return !ok })
		}
		next.Reducers[name] = r
	}
	for kind, e := range next.Effects { // order cannot show: each by itself
		if other, ok := by.Effects[kind]; ok {
			e.Class, e.MaxCost, e.Rate = other.Class, other.MaxCost, other.Rate
		}
		next.Effects[kind] = e
	}
	return next, nil
}
