// Package exchange decides who frees what: it makes tensors that C libraries can take over, takes over theirs, and speaks the exchange table of DLPack 1.3, all
// without Python.
//
// Two handles, by trust: a Local is a tensor that we made, a Foreign one that somebody handed over, and that was believed only after validation. Both hold one
// reference on the data until Release, which may be called more than once. Elements are reached by WithView and its siblings, for the
// length of a call.
//
// # Ownership
//
//	what                               who owns the struct            who keeps the data                     when it ends
//	FromSlice, Empty, Zeros, Build     -                              C memory, counted                      last Release or deleter, at once
//	Lend, LendString, Builder.Data     -                              the Go memory, pinned                  unpinned soon after the last Release or deleter
//	Builder.KeepAlive, OnRelease       -                              a table on the Go side                 soon after the last Release or deleter
//	Builder.Address alone              -                              the caller                             the caller knows
//	Export, ExportLegacy               the caller, then the consumer  a reference of its own                 the deleter, once, on any thread
//	Import, ImportLegacy, success      the Foreign                    the producer                           last Release or deleter runs the producer's deleter
//	Import, ImportLegacy, failure      nobody                         the producer                           its deleter has run, once
//	Retain                             -                              a reference of its own                 its own Release
//	Table.Import                       the Foreign; the object stays  the producer                           as Import
//	Table.Object, success              the other library              a reference of its own                 as that library says
//	Table.Object, failure              nobody: leaked on purpose      a reference that stays                 never: libraries differ in whether they freed it
//	Table.Borrow                       the object                     the object                             f returns
//
// Deleters of what we export are C. They run on any thread, never call Go, never wait, and work in a forked child, and after the process began to exit. What
// only Go can end (pins, functions) is queued, and ended by a goroutine that the deleter wakes, or by the next Drain.
//
// Ledger counts what is alive.
package exchange
