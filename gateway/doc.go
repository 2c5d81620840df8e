// Program gateway is a CMPP SMS gateway between customers (SPs, who log in to it) and suppliers (ISMGs, which it logs in to).
//
//	gateway serve         run it; --roles edge,core splits it over processes
//	gateway migrate       bring the database schema up to date
//	gateway check         compare configuration, database, Redis and clocks with what the promises need
//	gateway seed          write enterprises, applications, suppliers, channels and routes from a file
//	gateway ledger verify recompute all money from its entries
//	gateway unknown       list and resolve submits whose outcome nobody knows
//	gateway version
//
// Exit codes: 0 done, 1 failed, 2 wrong usage or configuration. main.go only wires; everything else is in internal/, besides
// the two leaves cmpp (codec) and sms (texts). The first SIGINT or SIGTERM stops `serve` in order, a second one at once.
package main
