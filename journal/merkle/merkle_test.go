package merkle_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl/journal/merkle"
)

// The reference vectors of Certificate Transparency: eight leaves, the roots of the first of them, and paths between. They
// are in its C++ and Go implementations, for example https://github.com/transparency-dev/merkle, testonly and proof.
var (
	ctLeaves = []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	ctRoots  = []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	ctInclusion = []struct {
		index, size int
		path        []string
	}{
		{0, 1, nil},
		{0, 8, []string{"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
			"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
			"6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}},
		{5, 8, []string{"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
			"ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
			"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
		{2, 3, []string{"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"}},
		{1, 5, []string{"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
			"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
			"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"}},
	}
	ctConsistency = []struct {
		first, size int
		path        []string
	}{
		{1, 1, nil},
		{1, 8, []string{"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
			"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
			"6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}},
		{6, 8, []string{"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
			"ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
			"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
		{2, 5, []string{"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
			"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"}},
	}
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hashOf(t *testing.T, text string) merkle.Hash {
	t.Helper()
	return merkle.Hash(unhex(t, text))
}

func hexOf(path []merkle.Hash) (list []string) {
	for _, h := range path {
		list = append(list, hex.EncodeToString(h[:]))
	}
	return list
}

func leafOf(data []byte) merkle.Hash { return sha256.Sum256(append([]byte{0}, data...)) }

func referenceLeaves(t *testing.T) (leaves []merkle.Hash) {
	for _, text := range ctLeaves {
		leaves = append(leaves, leafOf(unhex(t, text)))
	}
	return leaves
}

// S10.1: the roots that the reference implementation has for its leaves.
func TestReferenceRoots(t *testing.T) {
	leaves := referenceLeaves(t)
	var tree merkle.Tree
	for size, want := range ctRoots {
		root := merkle.Root(leaves[:size])
		if got := hex.EncodeToString(root[:]); got != want {
			t.Errorf("root of %d leaves: %s, want %s", size, got, want)
		}
		if tree.Root() != root || tree.Size() != uint64(size) {
			t.Errorf("a tree of %d leaves has size %d and root %x", size, tree.Size(), tree.Root())
		}
		if size < len(leaves) {
			tree.Append(leaves[size])
		}
	}
}

func TestReferencePaths(t *testing.T) {
	leaves := referenceLeaves(t)
	for _, v := range ctInclusion {
		path, err := merkle.Inclusion(leaves[:v.size], v.index)
		if diff := cmp.Diff(v.path, hexOf(path)); diff != "" || err != nil {
			t.Errorf("leaf %d of %d: %v\n%s", v.index, v.size, err, diff)
		}
		if err := merkle.VerifyInclusion(hashOf(t, ctRoots[v.size]), uint64(v.size), uint64(v.index), leaves[v.index], path); err != nil {
			t.Error(err)
		}
	}
	for _, v := range ctConsistency {
		path, err := merkle.Consistency(leaves[:v.size], v.first)
		if diff := cmp.Diff(v.path, hexOf(path)); diff != "" || err != nil {
			t.Errorf("%d of %d leaves: %v\n%s", v.first, v.size, err, diff)
		}
		if err := merkle.VerifyConsistency(hashOf(t, ctRoots[v.first]), hashOf(t, ctRoots[v.size]), uint64(v.first), uint64(v.size), path); err != nil {
			t.Error(err)
		}
	}
}

func TestOutOfRange(t *testing.T) {
	leaves := referenceLeaves(t)
	for _, index := range []int{-1, 8} {
		if _, err := merkle.Inclusion(leaves, index); err == nil {
			t.Errorf("leaf %d of 8 has a path", index)
		}
	}
	for _, first := range []int{-1, 9} {
		if _, err := merkle.Consistency(leaves, first); err == nil {
			t.Errorf("the first %d of 8 leaves have a path", first)
		}
	}
	root := merkle.Root(leaves)
	for name, err := range map[string]error{
		"a leaf behind the end":       merkle.VerifyInclusion(root, 8, 8, leaves[7], nil),
		"a leaf of the empty tree":    merkle.VerifyInclusion(merkle.Root(nil), 0, 0, leaves[0], nil),
		"a tree that shrank":          merkle.VerifyConsistency(root, root, 9, 8, nil),
		"another empty tree":          merkle.VerifyConsistency(root, root, 0, 8, nil),
		"a path from the empty tree":  merkle.VerifyConsistency(merkle.Root(nil), root, 0, 8, leaves[:1]),
		"equal sizes, another root":   merkle.VerifyConsistency(leaves[0], root, 8, 8, nil),
		"equal sizes, and a path":     merkle.VerifyConsistency(root, root, 8, 8, leaves[:1]),
		"a size of 64 bits, no path":  merkle.VerifyInclusion(root, 1<<63+1, 1<<63, leaves[0], nil),
		"sizes of 64 bits, no path":   merkle.VerifyConsistency(root, root, 1<<63, 1<<63+1, nil),
		"the greatest size, one hash": merkle.VerifyConsistency(root, root, 1, 1<<64-1, leaves[:1]),
	} {
		if !errors.Is(err, merkle.ErrPath) {
			t.Errorf("%s: %v, want ErrPath", name, err)
		}
	}
	if err := merkle.VerifyConsistency(merkle.Root(nil), root, 0, 8, nil); err != nil {
		t.Errorf("every tree begins with the empty one: %v", err)
	}
}

// naiveRoot is MTH as RFC 6962 defines it.
func naiveRoot(leaves []merkle.Hash) merkle.Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	left, right := naiveRoot(leaves[:k]), naiveRoot(leaves[k:])
	return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
}

func drawLeaves(t *rapid.T) []merkle.Hash {
	leaves := make([]merkle.Hash, rapid.IntRange(1, 200).Draw(t, "size"))
	for i := range leaves {
		leaves[i] = leafOf(fmt.Append(nil, i))
	}
	return leaves
}

// Every path verifies, and nothing else does: no other leaf, index, size, root or path.
func TestInclusionProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaves := drawLeaves(t)
		index := rapid.IntRange(0, len(leaves)-1).Draw(t, "index")
		root, size := naiveRoot(leaves), uint64(len(leaves))
		if merkle.Root(leaves) != root {
			t.Fatal("the root is not the naive one")
		}
		path, err := merkle.Inclusion(leaves, index)
		if err != nil {
			t.Fatal(err)
		}
		if err := merkle.VerifyInclusion(root, size, uint64(index), leaves[index], path); err != nil {
			t.Fatal(err)
		}
		other := rapid.IntRange(0, len(leaves)).Draw(t, "other")
		refused := func(what string, err error) {
			if !errors.Is(err, merkle.ErrPath) {
				t.Fatalf("%s: %v, want ErrPath", what, err)
			}
		}
		if other != index {
			refused("another index", merkle.VerifyInclusion(root, size, uint64(other), leaves[index], path))
		}
		refused("another leaf", merkle.VerifyInclusion(root, size, uint64(index), changed(t, leaves[index]), path))
		refused("another root", merkle.VerifyInclusion(changed(t, root), size, uint64(index), leaves[index], path))
		for what, path := range otherPaths(t, path) {
			refused(what, merkle.VerifyInclusion(root, size, uint64(index), leaves[index], path))
		}
	})
}

func TestConsistencyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaves := drawLeaves(t)
		first := rapid.IntRange(1, len(leaves)).Draw(t, "first")
		old, root := naiveRoot(leaves[:first]), naiveRoot(leaves)
		path, err := merkle.Consistency(leaves, first)
		if err != nil {
			t.Fatal(err)
		}
		m, n := uint64(first), uint64(len(leaves))
		if err := merkle.VerifyConsistency(old, root, m, n, path); err != nil {
			t.Fatal(err)
		}
		refused := func(what string, err error) {
			if !errors.Is(err, merkle.ErrPath) {
				t.Fatalf("%s: %v, want ErrPath", what, err)
			}
		}
		refused("another old root", merkle.VerifyConsistency(changed(t, old), root, m, n, path))
		refused("another root", merkle.VerifyConsistency(old, changed(t, root), m, n, path))
		for what, path := range otherPaths(t, path) {
			refused(what, merkle.VerifyConsistency(old, root, m, n, path))
		}
	})
}

// changed returns the hash with one bit changed.
func changed(t *rapid.T, h merkle.Hash) merkle.Hash {
	bit := rapid.IntRange(0, 255).Draw(t, "bit")
	h[bit/8] ^= 1 << (bit % 8)
	return h
}

// otherPaths returns paths that differ from this one.
func otherPaths(t *rapid.T, path []merkle.Hash) map[string][]merkle.Hash {
	others := map[string][]merkle.Hash{
		"a longer path":            append(slices.Clone(path), leafOf(nil)),
		"a path with a false leaf": append([]merkle.Hash{leafOf(nil)}, path...),
	}
	if len(path) > 0 {
		at := rapid.IntRange(0, len(path)-1).Draw(t, "at")
		edited := slices.Clone(path)
		edited[at] = changed(t, edited[at])
		others["an edited path"] = edited
		others["a path without a hash"] = slices.Delete(slices.Clone(path), at, at+1)
	}
	return others
}

func ExampleVerifyInclusion() {
	leaves := []merkle.Hash{{1}, {2}, {3}, {4}, {5}} // journal.LeafHash of five records
	root := merkle.Root(leaves)
	path, err := merkle.Inclusion(leaves, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(path), "hashes:", merkle.VerifyInclusion(root, 5, 3, leaves[3], path))
	fmt.Println(merkle.VerifyInclusion(root, 5, 3, leaves[2], path))
	// Output:
	// 3 hashes: <nil>
	// pawl: the Merkle path does not fit: leaf 3 of 5
}

func ExampleVerifyConsistency() {
	leaves := []merkle.Hash{{1}, {2}, {3}, {4}, {5}}
	yesterday, today := merkle.Root(leaves[:3]), merkle.Root(leaves)
	path, err := merkle.Consistency(leaves, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(merkle.VerifyConsistency(yesterday, today, 3, 5, path))
	// Output: <nil>
}
