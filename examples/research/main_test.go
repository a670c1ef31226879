package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// Cordouan lighthouse: The first lighthouse of Cordouan was finished in 1611.
	// first Fresnel lens: Cordouan was the first to have a lens of Fresnel's, in 1823.
	//
	// It is old, and its light was the first of a new kind.
	//
	// Cordouan has stood since 1611. In 1823 it got the first lens of Fresnel's.
	//
	// To find out: Who paid for it?
}
