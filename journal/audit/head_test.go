package audit_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
)

// small is a ledger whose hashes are known.
func small() []journal.Record {
	bodies := []journal.Body{&journal.Started{Run: "r-1", Agent: "A", Machine: 1}, &journal.Confirmed{N: 1, Upto: 3}, &journal.Finished{At: 2}}
	var list []journal.Record
	for i, b := range bodies {
		salt := [16]byte(bytes.Repeat([]byte{byte(i + 1)}, 16))
		list = append(list, journal.Encode(journal.Fact{Time: int64(i+1) * 1000, Body: b}, salt))
	}
	return list
}

// The hashes are S10.2's, computed by another program from the definitions.
func TestHead(t *testing.T) {
	h, err := audit.HeadOf("r-1", small())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schema":"pawl.head/1","run":"r-1","size":3,"root":"3ca8029c75f8adf546ed71bea3601089ac9264e3904e0be766db8a89a93a7094","head":"403c721a4af83783ebd23f7622ed3f939769afe17b7922d4477ac7cfbaf1a51d"}`
	if got := toJSON(t, h); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func anchors(h audit.Head) map[string]audit.Anchor {
	return map[string]audit.Anchor{"hash": {Hash: h.Hash()}, "head": {Hash: h.Hash(), Head: &h}}
}

// S10.3
func TestVerifyFindsTheBeginning(t *testing.T) {
	records := ticket(t)
	for size := 1; size <= len(records); size++ {
		for name, a := range anchors(headOf(t, records[:size])) {
			got, err := audit.Verify("ticket-1", records, a)
			if err != nil || got.Size != uint64(size) || got.Hash() != a.Hash {
				t.Fatalf("the %s of %d facts: %+v, %v", name, size, got, err)
			}
		}
	}
}

// S10.3
func TestVerifyFindsEveryTampering(t *testing.T) {
	records := ticket(t)
	i := slices.IndexFunc(records, func(r journal.Record) bool { return r.Kind == journal.KindDecided })
	forged := edited(records[i], strings.Replace(records[i].Payload, `"by":"ada"`, `"by":"eve"`, 1))
	if forged.Payload == records[i].Payload {
		t.Fatal("the decision does not say who took it")
	}
	resalted := records[i]
	resalted.Salt[0]++
	unhashed := forged
	unhashed.Hash = records[i].Hash
	swap := func(i, j int) []journal.Record {
		list := slices.Clone(records)
		list[i], list[j] = list[j], list[i]
		return list
	}
	other := ticket(t)
	h := headOf(t, records)
	for name, ledger := range map[string][]journal.Record{
		"edited":                       replaceAt(records, i, forged),
		"edited without its hash":      replaceAt(records, i, unhashed),
		"another salt":                 replaceAt(records, i, edited(resalted, records[i].Payload)),
		"cut short":                    records[:len(records)-1],
		"cut at the front":             records[1:],
		"cut in the middle":            slices.Delete(slices.Clone(records), i, i+1),
		"put in another order":         swap(i, i+1),
		"with a fact put in":           slices.Insert(slices.Clone(records), i, records[i]),
		"replaced":                     other,
		"empty":                        nil,
		"another's beginning, its end": append(slices.Clone(other[:i]), records[i:]...),
	} {
		for form, a := range anchors(h) {
			if _, err := audit.Verify("ticket-1", ledger, a); !errors.Is(err, audit.ErrMismatch) {
				t.Errorf("%s, against the %s: %v, want ErrMismatch", name, form, err)
			}
		}
	}
	for form, a := range anchors(h) {
		if _, err := audit.Verify("ticket-2", records, a); !errors.Is(err, audit.ErrMismatch) {
			t.Errorf("as another run, against the %s: %v, want ErrMismatch", form, err)
		}
	}
	other2 := h
	other2.Run = "ticket-2"
	if _, err := audit.Verify("ticket-1", records, audit.Anchor{Hash: other2.Hash(), Head: &other2}); !errors.Is(err, audit.ErrMismatch) {
		t.Errorf("against the head of another run: %v, want ErrMismatch", err)
	}
}

func replaceAt(records []journal.Record, i int, rec journal.Record) []journal.Record {
	list := slices.Clone(records)
	list[i] = rec
	return list
}

// Whatever is done to the facts of a head, it does not verify; whatever is appended, it does.
func TestVerifyProperty(t *testing.T) {
	records := ticket(t)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, len(records)).Draw(t, "size")
		h, err := audit.HeadOf("ticket-1", records[:size])
		if err != nil {
			t.Fatal(err)
		}
		i := rapid.IntRange(0, size-1).Draw(t, "at")
		ledger := slices.Clone(records)
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			ledger[i].Time += rapid.Int64Min(1).Draw(t, "later")
			ledger[i].Hash = journal.LeafHash(&ledger[i])
		case 1:
			ledger = slices.Delete(ledger, i, i+1)
		case 2:
			other := rapid.IntRange(0, len(ledger)-2).Draw(t, "copy")
			if other >= i {
				other++
			}
			ledger = slices.Insert(ledger, i, ledger[other])
		case 3:
			ledger = ledger[:i]
		}
		for form, a := range anchors(h) {
			if _, err := audit.Verify("ticket-1", ledger, a); !errors.Is(err, audit.ErrMismatch) {
				t.Fatalf("against the %s: %v, want ErrMismatch", form, err)
			}
			if _, err := audit.Verify("ticket-1", records, a); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// S10.2: the record is named.
func TestHeadOfRefusesDamage(t *testing.T) {
	records := ticket(t)
	records[6].Payload = strings.Replace(records[6].Payload, "0", "1", 1)
	if _, err := audit.HeadOf("ticket-1", records); !errors.Is(err, journal.ErrCorrupt) || !strings.Contains(err.Error(), "fact 7") {
		t.Errorf("err = %v, want ErrCorrupt that names fact 7", err)
	}
	records = ticket(t)
	if _, err := audit.HeadOf("ticket-2", records); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("as another run: %v, want ErrCorrupt", err)
	}
	records[6].Kind = "later"
	records[6].Hash = journal.LeafHash(&records[6])
	if _, err := audit.HeadOf("ticket-1", records); !errors.Is(err, journal.ErrNewerJournal) {
		t.Errorf("with a kind that is not known: %v, want ErrNewerJournal", err)
	}
}

// S10.3
func TestParseAnchor(t *testing.T) {
	h := headOf(t, ticket(t))
	hash := h.Hash()
	digits, line := hex.EncodeToString(hash[:]), toJSON(t, h)
	for name, c := range map[string]struct {
		text string
		head bool
	}{
		"a hash":            {digits, false},
		"a file with it":    {digits + "\n", false},
		"a head":            {line, true},
		"the end of a file": {"{\"fact\":1}\n" + line + "\r\n", true},
	} {
		a, err := audit.ParseAnchor([]byte(c.text))
		if err != nil || a.Hash != hash || (a.Head != nil) != c.head {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	for name, text := range map[string]string{
		"nothing":             "",
		"white space":         "\n\n",
		"a short hash":        digits[2:],
		"a long hash":         digits + "00",
		"something else":      strings.Repeat("x", 64),
		"a document":          `{"schema":"pawl.run/1"}`,
		"another schema":      strings.Replace(line, "head/1", "head/2", 1),
		"another run":         strings.Replace(line, "ticket-1", "ticket-2", 1),
		"another size":        strings.Replace(line, `"size":`, `"size":1`, 1),
		"another hash":        strings.Replace(line, digits, strings.Repeat("0", 64), 1),
		"another member":      strings.Replace(line, "{", `{"more":1,`, 1),
		"a line that is cut":  line[:len(line)-1],
		"a head and not more": line + "\nx",
	} {
		if _, err := audit.ParseAnchor([]byte(text)); !errors.Is(err, audit.ErrAnchor) {
			t.Errorf("%s: %v, want ErrAnchor", name, err)
		}
	}
}

// Keep the head of a run where whoever can write the store cannot: a mail, a repository, a notary.
func ExampleVerify() {
	records := small() // from journal.Driver.Read
	head, err := audit.HeadOf("r-1", records[:2])
	if err != nil {
		fmt.Println(err)
		return
	}
	kept := audit.Anchor{Hash: head.Hash()}

	_, err = audit.Verify("r-1", records, kept)
	fmt.Println("grown:", err)

	forged := journal.Encode(journal.Fact{Time: 2000, Body: &journal.Confirmed{N: 1, Upto: 4}}, records[1].Salt)
	_, err = audit.Verify("r-1", []journal.Record{records[0], forged, records[2]}, kept)
	fmt.Println("forged:", errors.Is(err, audit.ErrMismatch))
	// Output:
	// grown: <nil>
	// forged: true
}
