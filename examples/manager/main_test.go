package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// asks to_Spanish
	// asks to_French
	// Spanish: Buenos días
	// French: Bonjour
	// requests: 4
}
