package main

import "os"

func Example() {
	os.Unsetenv("OPENAI_API_KEY")
	main()
	// Output:
	// Customer: I was charged twice for order 9.
	//   [Front desk]
	//   [Billing]
	//   refund
	// Billing: The second charge is refunded.
	//
	// Customer: Thanks. And where is it?
	//   [Front desk]
	//   [Shipping]
	//   track
	// Shipping: It is in Lyon, on its way to you.
}
