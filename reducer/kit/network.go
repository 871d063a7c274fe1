package kit

import "slices"

// Network says which nodes are linked: for each from 0 on, its neighbours, sorted.
type Network [][]int

// Ring returns n nodes in a circle, each linked to the k/2 that come next on either side.
// k is even, from 0 on, and below n; else it is nil.
func Ring(n, k int) Network {
	links := circle(n, k)
	return links.sorted()
}

// SmallWorld returns a ring of which each link leads, with probability p, elsewhere.
//
// Watts, D. J., Strogatz, S. H. (1998). Collective dynamics of small-world networks.
// Nature 393, 440-442.
func SmallWorld(s Source, n, k int, p float64) Network {
	links := circle(n, k)
	if links == nil {
		s.Random(0)
		return nil
	}
	for d := 1; d <= k/2; d++ {
		for i := range n {
			if !Chance(s, p) || len(links[i]) == n-1 {
				continue
			}
			other := i
			for other == i || slices.Contains(links[i], other) {
				other = int(s.Random(uint64(n)))
			}
			links.unlink(i, (i+d)%n)
			links.link(i, other)
		}
	}
	return links.sorted()
}

// RandomGraph returns n nodes of which each two are linked with probability p. It draws
// how many are not linked before the next that are.
//
// Batagelj, V., Brandes, U. (2005). Efficient generation of large random networks.
// Physical Review E 71, 036113.
func RandomGraph(s Source, n int, p float64) Network {
	links := make(Network, n)
	if !(p > 0) || n < 2 {
		return links
	}
	j := int64(1)
	for i := Geometric(s, p); ; i += 1 + Geometric(s, p) {
		for j < int64(n) && i >= j {
			i -= j
			j++
		}
		if j >= int64(n) {
			return links.sorted()
		}
		links.link(int(i), int(j))
	}
}

// ScaleFree returns m+1 nodes that are all linked, to which the others are added, each
// with m links. A node gets links by how many it has.
//
// Barabasi, A.-L., Albert, R. (1999). Emergence of scaling in random networks. Science
// 286, 509-512.
func ScaleFree(s Source, n, m int) Network {
	if m < 1 || n <= m {
		s.Random(0)
		return nil
	}
	links, ends := make(Network, n), []int(nil)
	for added := 1; added < n; added++ {
		var chosen []int
		for other := 0; added <= m && other < added; other++ {
			chosen = append(chosen, other)
		}
		for len(chosen) < min(m, added) {
			other := ends[s.Random(uint64(len(ends)))]
			if !slices.Contains(chosen, other) {
				chosen = append(chosen, other)
			}
		}
		for _, other := range chosen {
			links.link(other, added)
			ends = append(ends, other, added)
		}
	}
	return links.sorted()
}

// FromEdges returns the network of n nodes whose links are given as pairs, each once.
func FromEdges(n int, edges [][2]int) Network {
	links := make(Network, n)
	for _, e := range edges {
		links.link(e[0], e[1])
	}
	return links.sorted()
}

// Edges returns the links as sorted pairs, the smaller node of each first.
func (w Network) Edges() [][2]int {
	var out [][2]int
	for i, linked := range w {
		for _, j := range linked {
			if i < j {
				out = append(out, [2]int{i, j})
			}
		}
	}
	return out
}

func circle(n, k int) Network {
	if k < 0 || k%2 != 0 || k >= n {
		return nil
	}
	links := make(Network, n)
	for d := 1; d <= k/2; d++ {
		for i := range n {
			links.link(i, (i+d)%n)
		}
	}
	return links
}

func (w Network) link(i, j int) {
	w[i], w[j] = append(w[i], j), append(w[j], i)
}

func (w Network) unlink(i, j int) {
	w[i] = slices.DeleteFunc(w[i], func(n int) bool { return n == j })
	w[j] = slices.DeleteFunc(w[j], func(n int) bool { return n == i })
}

func (w Network) sorted() Network {
	for _, linked := range w {
		slices.Sort(linked)
	}
	return w
}
