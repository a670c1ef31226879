// Package merkle computes the Merkle tree of a ledger: RFC 6962, section 2.1 (RFC 9162 has
// the same tree), over leaf hashes that the caller has. The leaf hash of a record is
// journal.LeafHash.
//
// The root of a ledger's first records stands for all of them. An audit path shows that a
// record is one of them, without the others; a consistency path shows that a longer ledger
// begins with a shorter one.
//
// All functions are safe for concurrent use.
package merkle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
)

// Hash is a SHA-256 hash, of a leaf or of a node.
type Hash = [sha256.Size]byte

// ErrPath: a path does not lead where it is said to lead.
var ErrPath = errors.New("pawl: the Merkle path does not fit")

// Tree is the tree of the leaves appended to it. It keeps one hash for each level, not the
// leaves, so the root after each append is cheap. The zero Tree is empty. A Tree is not safe
// for concurrent use.
type Tree struct {
	size  uint64
	whole []Hash // roots of full subtrees, the largest first: one for each bit of size
}

// Append adds the next leaf.
func (t *Tree) Append(leaf Hash) {
	t.whole = append(t.whole, leaf)
	for range bits.TrailingZeros64(^t.size) {
		last := len(t.whole) - 1
		t.whole = append(t.whole[:last-1], node(t.whole[last-1], t.whole[last]))
	}
	t.size++
}

// Size returns the number of leaves.
func (t *Tree) Size() uint64 { return t.size }

// Root returns the root hash, of no leaves the hash of the empty text.
func (t *Tree) Root() Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	last := len(t.whole) - 1
	root := t.whole[last]
	for i := last - 1; i >= 0; i-- {
		root = node(t.whole[i], root)
	}
	return root
}

// Root returns the root hash of the leaves.
func Root(leaves []Hash) Hash {
	var t Tree
	for _, leaf := range leaves {
		t.Append(leaf)
	}
	return t.Root()
}

// Inclusion returns the audit path of the leaf at an index, from 0 on: PATH of RFC 6962,
// section 2.1.1. It is an error if there is no such leaf.
func Inclusion(leaves []Hash, index int) ([]Hash, error) {
	if index < 0 || index >= len(leaves) {
		return nil, fmt.Errorf("pawl: there is no leaf %d among %d", index, len(leaves))
	}
	return inclusion(leaves, uint64(index)), nil
}

func inclusion(leaves []Hash, index uint64) []Hash {
	if len(leaves) == 1 {
		return nil
	}
	k := split(uint64(len(leaves)))
	if index < k {
		return append(inclusion(leaves[:k], index), Root(leaves[k:]))
	}
	return append(inclusion(leaves[k:], index-k), Root(leaves[:k]))
}

// VerifyInclusion reports whether the path shows that the leaf stands at the index in the
// tree of that size and root. The error wraps ErrPath.
func VerifyInclusion(root Hash, size, index uint64, leaf Hash, path []Hash) error {
	if index >= size {
		return fmt.Errorf("%w: there is no leaf %d among %d", ErrPath, index, size)
	}
	got, ok := rootOver(leaf, size, index, path)
	if !ok || got != root {
		return fmt.Errorf("%w: leaf %d of %d", ErrPath, index, size)
	}
	return nil
}

// rootOver returns the root to which the path leads from the leaf. It is inclusion, read
// backwards: the last hash is that of the other half.
func rootOver(leaf Hash, size, index uint64, path []Hash) (root Hash, ok bool) {
	if size == 1 {
		return leaf, len(path) == 0
	}
	if len(path) == 0 {
		return root, false
	}
	rest, other := path[:len(path)-1], path[len(path)-1]
	k := split(size)
	if index < k {
		root, ok = rootOver(leaf, k, index, rest)
		return node(root, other), ok
	}
	root, ok = rootOver(leaf, size-k, index-k, rest)
	return node(other, root), ok
}

// Consistency returns the path that shows that the tree of all leaves begins with the tree
// of the first ones: PROOF of RFC 6962, section 2.1.2. It is empty if first is 0 or all. It is
// an error if there are not so many.
func Consistency(leaves []Hash, first int) ([]Hash, error) {
	if first < 0 || first > len(leaves) {
		return nil, fmt.Errorf("pawl: there are no first %d leaves among %d", first, len(leaves))
	}
	if first == 0 {
		return nil, nil
	}
	return consistency(leaves, uint64(first), true), nil
}

// consistency is SUBPROOF: whole says that the first leaves are the whole older tree, whose
// root the verifier has.
func consistency(leaves []Hash, first uint64, whole bool) []Hash {
	size := uint64(len(leaves))
	switch {
	case first == size && whole:
		return nil
	case first == size:
		return []Hash{Root(leaves)}
	}
	k := split(size)
	if first <= k {
		return append(consistency(leaves[:k], first, whole), Root(leaves[k:]))
	}
	return append(consistency(leaves[k:], first-k, false), Root(leaves[:k]))
}

// VerifyConsistency reports whether the path shows that the tree of size and root begins
// with the tree of firstSize and firstRoot. The error wraps ErrPath.
func VerifyConsistency(firstRoot, root Hash, firstSize, size uint64, path []Hash) error {
	ok := false
	switch {
	case firstSize > size:
	case firstSize == 0:
		ok = firstRoot == sha256.Sum256(nil) && len(path) == 0
	default:
		var oldRoot, newRoot Hash
		oldRoot, newRoot, ok = rootsOver(firstRoot, firstSize, size, true, path)
		ok = ok && oldRoot == firstRoot && newRoot == root
	}
	if !ok {
		return fmt.Errorf("%w: %d leaves as the first of %d", ErrPath, firstSize, size)
	}
	return nil
}

// rootsOver returns the roots of both trees to which the path leads. It is consistency, read
// backwards.
func rootsOver(firstRoot Hash, first, size uint64, whole bool, path []Hash) (oldRoot, newRoot Hash, ok bool) {
	if first == size && whole {
		return firstRoot, firstRoot, len(path) == 0
	}
	if len(path) == 0 {
		return oldRoot, newRoot, false
	}
	rest, other := path[:len(path)-1], path[len(path)-1]
	if first == size {
		return other, other, len(rest) == 0
	}
	k := split(size)
	if first <= k {
		oldRoot, newRoot, ok = rootsOver(firstRoot, first, k, whole, rest)
		return oldRoot, node(newRoot, other), ok
	}
	oldRoot, newRoot, ok = rootsOver(firstRoot, first-k, size-k, false, rest)
	return node(other, oldRoot), node(other, newRoot), ok
}

// split returns the size of the left subtree: the largest power of two below size, which is
// at least 2.
func split(size uint64) uint64 { return 1 << (bits.Len64(size-1) - 1) }

// node returns the hash of an inner node.
func node(left, right Hash) Hash {
	var text [1 + 2*sha256.Size]byte
	text[0] = 1
	copy(text[1:], left[:])
	copy(text[1+sha256.Size:], right[:])
	return sha256.Sum256(text[:])
}
