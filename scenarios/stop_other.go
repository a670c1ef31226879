//go:build !unix

package scenarios

func (k *worker) stops()     { k.w.Fatal("a process cannot be stopped here") }
func (k *worker) continues() {}
