// Package accounts knows who may ask for what, how much, and what was asked:
// organizations, projects, API keys, browser sessions, limits, the ledger of
// what was used and the log of requests, in one SQLite file.
//
// A [Store] is opened once per process. The HTTP handlers call it in this
// order: [Store.Authenticate] (or [Store.AuthenticateSession]) turns a
// credential into a [Principal], [Store.Admit] books the request against the
// limits and gives a [Ticket], [Ticket.Settle] replaces the reservation with
// what was really used, and [Store.Log] hands over the request's record. None
// of the four waits for the disk, but for a session's first look-up.
//
// # What lives where
//
// All keys and rules are kept in memory in a [directory], which is never
// changed but replaced whole. Changes by this process replace it before they
// return; those of other processes, such as the keys command, are found by
// asking SQLite twenty times a second whether the file has changed, and at once
// when an unknown key turns up.
//
// Rates and requests in flight are counted in memory alone ([admission]): they
// start anew with the process, so no reservation outlives it. What was spent
// and the tokens of the day come from the ledger, which the store writes in the
// same transaction as the records that it sums up, so the two never differ,
// whatever ends the process.
//
// Several processes may serve from a store, each its model. They have the same
// keys and rules, enter all that they serve in the same ledger and log, and
// learn of each other's spending as it is written there: credits, caps and the
// tokens of a day are of all together, but for the last second. Rates and
// requests in flight are counted by each process alone.
//
// # Goroutines
//
// Two goroutines belong to the store and end with Close: watch looks for the
// changes of other processes, write empties the queue of records. All methods
// may be called from any goroutine.
package accounts
