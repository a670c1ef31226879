//go:build !unix

package owner

// exists cannot tell here, and an owner that may live is not gone.
func exists(int) bool { return true }
