package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// Draft 1: We repair umbrellas.
	//   needs_work: Say what the customer gets.
	// Draft 2: Stay dry for another ten years.
	//   pass: It promises something.
}
