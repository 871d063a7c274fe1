package kit

// Place is a place of a grid, from (0, 0) on.
type Place struct{ X, Y int }

// Grid has places in rows and columns. On a torus what leaves it on one side comes back
// on the other. Width and height are at least 1.
type Grid struct {
	Width, Height int
	Torus         bool
}

// Moore returns the places around one, row by row: 8 where the radius is 1.
func (g Grid) Moore(p Place, radius int) []Place { return g.around(p, radius, 2*radius) }

// VonNeumann returns the places that are so many steps away at most: 4 where the radius
// is 1.
func (g Grid) VonNeumann(p Place, radius int) []Place { return g.around(p, radius, radius) }

// Move returns the place that is so far from another, on a grid that is no torus the last
// before its edge.
func (g Grid) Move(p Place, dx, dy int) Place {
	return Place{coordinate(p.X+dx, g.Width, g.Torus), coordinate(p.Y+dy, g.Height, g.Torus)}
}

// Offset returns how far it is in each direction from one place to another, on the
// shortest way.
func (g Grid) Offset(from, to Place) (dx, dy int) {
	return way(to.X-from.X, g.Width, g.Torus), way(to.Y-from.Y, g.Height, g.Torus)
}

// Index returns the number of a place, row by row from 0 on.
func (g Grid) Index(p Place) int { return p.Y*g.Width + p.X }

// Place returns the place of a number.
func (g Grid) Place(index int) Place { return Place{index % g.Width, index / g.Width} }

func (g Grid) around(p Place, radius, steps int) []Place {
	var out []Place
	left, right := reach(p.X, g.Width, radius, g.Torus)
	low, high := reach(p.Y, g.Height, radius, g.Torus)
	for dy := low; dy <= high; dy++ {
		for dx := left; dx <= right; dx++ {
			if n := max(dx, -dx) + max(dy, -dy); 0 < n && n <= steps {
				out = append(out, g.Move(p, dx, dy))
			}
		}
	}
	return out
}

// reach returns how far what lies around a row or column is away, so that nothing comes
// twice.
func reach(at, size, radius int, torus bool) (first, last int) {
	if torus {
		return -min(radius, (size-1)/2), min(radius, size/2)
	}
	return max(at-radius, 0) - at, min(at+radius, size-1) - at
}

func coordinate(i, size int, torus bool) int {
	if torus {
		return mod(i, size)
	}
	return max(0, min(i, size-1))
}

func way(d, size int, torus bool) int {
	if torus {
		return mod(d+(size-1)/2, size) - (size-1)/2
	}
	return d
}

// mod is not below 0.
func mod(i, n int) int { return (i%n + n) % n }
