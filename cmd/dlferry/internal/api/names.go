package api

import (
	"slices"
	"strings"
	"unicode"
)

var keywords = strings.Fields(`False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda
	nonlocal not or pass raise return try while with yield`)

// IsKeyword says whether Python keeps the name for itself.
func IsKeyword(name string) bool { return slices.Contains(keywords, name) }

// IsIdentifier says whether the name is an identifier of Python in ASCII, keywords included.
func IsIdentifier(name string) bool {
	for i, r := range name {
		if letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'; !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// Snake turns a Go name into a Python one: TopK into top_k, HTTPGet into http_get, Conv2D into conv2d. A keyword gets an underscore behind it.
func Snake(name string) string {
	letters := []rune(name)
	var out strings.Builder
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 && letters[i-1] != '_' {
			before := letters[i-1]
			startsWord := i+1 < len(letters) && unicode.IsLower(letters[i+1])
			if startsWord || !unicode.IsUpper(before) && !unicode.IsDigit(before) {
				out.WriteByte('_')
			}
		}
		out.WriteRune(unicode.ToLower(r))
	}
	if IsKeyword(out.String()) {
		out.WriteByte('_')
	}
	return out.String()
}
