package temporal

import "testing"

// Nobody can write where the system forbids it.
func TestBlobsReadOnly(t *testing.T) {
	for _, d := range []Dir{"/proc", "/sys"} {
		if err := d.Check(false); err != nil {
			t.Error(d, err)
		}
		if err := d.Check(true); err == nil {
			t.Errorf("%s can be written, it says", d)
		}
	}
}
