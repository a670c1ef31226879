package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// Outline: A keeper lights a lamp that no ship has needed for years, until one does.
	// Minutes to read: 1
	// Story: Every evening Ines lit the lamp for nobody. The night the fog took the radio masts, nobody blew his horn twice.
}
