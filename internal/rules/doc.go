// Package rules tests the structure of the module from its sources: which package may import which, and where C and Python's API may be named.
package rules
