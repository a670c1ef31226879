package pawl_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-agents/pawl"
)

// Whatever a document was made into, it is read as what it says or refused with a typed
// error; what was read can be written, and is the same then. cut and flip damage it on its
// way.
func FuzzParseRunState(f *testing.F) {
	docs, err := filepath.Glob("testdata/runstate/*/*.json")
	if err != nil || len(docs) == 0 {
		f.Fatalf("%d documents, %v", len(docs), err)
	}
	for _, name := range docs {
		doc, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc, uint(0), uint(0))
		f.Add(doc, uint(len(doc)/2), uint(0))
		f.Add(doc, uint(0), uint(len(doc)*4))
	}
	f.Fuzz(func(t *testing.T, doc []byte, cut, flip uint) {
		doc = append([]byte(nil), doc...)
		if cut > 0 {
			doc = doc[:uint(len(doc))-cut%uint(len(doc)+1)]
		}
		if flip > 0 && len(doc) > 0 {
			bit := flip % uint(8*len(doc))
			doc[bit/8] ^= 1 << (bit % 8)
		}
		s, err := pawl.ParseRunState(doc)
		if err != nil {
			if !errors.Is(err, pawl.ErrState) && !errors.Is(err, pawl.ErrNewerState) {
				t.Errorf("an error of no type: %v", err)
			}
			return
		}
		s.Interruptions()
		s.Result().ToInputList()
		written, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := pawl.ParseRunState(written)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if same, err := again.MarshalJSON(); err != nil || string(same) != string(written) {
			t.Errorf("it is not the same when it is read again: %v", err)
		}
	})
}
