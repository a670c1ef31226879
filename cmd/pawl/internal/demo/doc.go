// Package demo is the business that "pawl demo" works for: a shop in an SQLite database, a
// support desk agent with tools that move its money, and a model that answers from the request alone.
//
// Open opens the run store and the shop, World.Open a ticket, World.Desk what drives its run. What became
// of a run is read back by Desk.Table from the places that hold it: the shop's rows, the session's
// rows, the bodies the model's server received.
package demo
