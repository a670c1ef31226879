package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// Which is the longest river of France?
	// Librarian: The Loire, with 1,006 kilometres.
	// What is 17 times 23?
	// Accountant: 17 times 23 is 391.
	// Is tea better than coffee?
	// Host: I would not know: I drink neither.
}
