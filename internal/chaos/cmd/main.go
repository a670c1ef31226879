// Command chaos kills processes that drive runs in one store, and says what became of every effect: see package chaos.
package main

import "github.com/pawl-agents/pawl/internal/chaos"

func main() { chaos.Main(chaos.Host{}) }
