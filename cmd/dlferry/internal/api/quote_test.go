package api

import "testing"

func TestStringsAsPythonHasThem(t *testing.T) {
	for text, want := range map[string]string{
		"":               `""`,
		`a"b\c`:          `"a\"b\\c"`,
		"a\nb\tc\r\x00d": `"a\nb\tc\x0d\x00d"`,
		"ö€😀":            `"\u00f6\u20ac\U0001f600"`,
		"\xff":           `"\ufffd"`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
