package star

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// sorted is a stable merge sort of our own: the comparisons that it makes are
// charged, and so must not depend on the version of Go.
func (m *meter) sorted(
	thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var items starlark.Iterable
	var key starlark.Callable
	var reverse bool
	err := starlark.UnpackArgs("sorted", args, kwargs, "iterable", &items, "key?", &key, "reverse?", &reverse)
	if err != nil {
		return nil, err
	}
	values := m.collect(items)
	keys, err := m.keysOf(thread, values, key)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	less := func(i, j int) (bool, error) {
		if reverse {
			i, j = j, i
		}
		return m.ordered(syntax.LT, keys[i], keys[j])
	}
	if err := mergeSort(order, make([]int, len(order)), less); err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(values))
	for i, j := range order {
		out[i] = values[j]
	}
	return starlark.NewList(out), nil
}

// mergeSort sorts order by less, with scratch of the same length.
func mergeSort(order, scratch []int, less func(i, j int) (bool, error)) error {
	n := len(order)
	if n < 2 {
		return nil
	}
	left, right := order[:n/2], order[n/2:]
	if err := mergeSort(left, scratch, less); err != nil {
		return err
	}
	if err := mergeSort(right, scratch, less); err != nil {
		return err
	}
	if after, err := less(right[0], left[len(left)-1]); err != nil || !after {
		return err // in order already
	}
	out := scratch[:0]
	for len(left) > 0 && len(right) > 0 {
		first, err := less(right[0], left[0])
		if err != nil {
			return err
		}
		if first {
			out, right = append(out, right[0]), right[1:]
		} else {
			out, left = append(out, left[0]), left[1:]
		}
	}
	out = append(append(out, left...), right...)
	copy(order, out)
	return nil
}
