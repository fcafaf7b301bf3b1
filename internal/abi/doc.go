// Package abi holds this project's C declaration of the DLPack 1.3 ABI and the kinds of refusal. It has no Go code: import it for its headers, with a blank
// identifier, so that `go mod vendor` keeps them next to the packages that include them.
package abi
