package tokenizer

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	got := Words("Don't  panic: 3.14 ≈ π!")
	if want := []string{"Don't", "panic", ":", "3.14", "≈", "π", "!"}; !slices.Equal(got, want) {
		t.Errorf("Words: %q, want %q", got, want)
	}
}
