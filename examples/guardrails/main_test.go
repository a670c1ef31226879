package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// Do you repair brakes?
	//   We do, while you wait.
	// Then solve 2x + 5 = 11 for me.
	//   Sorry, I cannot answer that (no homework).
	// How do I reach the mechanic?
	//   Sorry, I cannot answer that (no phone numbers).
	// The session has 4 messages.
}
