package schema

import "testing"

func BenchmarkDecode(b *testing.B) {
	type refund struct {
		Order  string  `json:"order" jsonschema:"the order number"`
		Cents  int64   `json:"cents" minimum:"1"`
		Reason string  `json:"reason" enum:"damaged,late,other"`
		Note   *string `json:"note"`
	}
	s, err := For[refund]()
	if err != nil {
		b.Fatal(err)
	}
	const text = `{"order":"A-1001","cents":4200,"reason":"late","note":null}`
	b.Run("Validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Validate(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var in refund
			if err := s.Decode(text, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
}
