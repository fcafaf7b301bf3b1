// Package tokenizer splits texts by the rules of Unicode, and makes tensors of them.
package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dlferry/dlferry/exchange"
	"github.com/rivo/uniseg"
)

// Words is the words and the punctuation of a text, by the word boundaries of Unicode's annex 29, without white space.
//
//dlferry:export
func Words(text string) []string {
	words := []string{}
	for state := -1; text != ""; {
		var word string
		word, text, state = uniseg.FirstWordInString(text, state)
		if strings.TrimSpace(word) != "" {
			words = append(words, word)
		}
	}
	return words
}

// Graphemes counts what a reader would call characters: an emoji with a skin tone is one.
//
//dlferry:export
func Graphemes(text string) int { return uniseg.GraphemeClusterCount(text) }

// Encode is a batch of int32 with a row for each text and in it the places of the text's words in vocabulary.
//
// Words that are not there get the id unknown. Rows are filled up with the id padding, to length, where longer ones are cut, or if it is 0 to the longest.
//
//dlferry:export nogil
//dlferry:default length=0 padding=0 unknown=1
func Encode(texts, vocabulary []string, length int, padding, unknown int32) (*exchange.Local, error) {
	if length < 0 {
		return nil, fmt.Errorf("length is %d, want 0 or more", length)
	}
	place := make(map[string]int32, len(vocabulary))
	for i, word := range vocabulary {
		if _, twice := place[word]; twice {
			return nil, fmt.Errorf("vocabulary has %q twice", word)
		}
		place[word] = int32(i)
	}
	rows := make([][]string, len(texts))
	width := length
	for i, text := range texts {
		rows[i] = Words(text)
		if length == 0 {
			width = max(width, len(rows[i]))
		}
	}
	if width != 0 && len(rows) > maxIDs/width {
		return nil, errors.New("the batch is too large; give a smaller length")
	}
	ids := make([]int32, 0, len(rows)*width)
	for _, row := range rows {
		for _, word := range row[:min(len(row), width)] {
			id, known := place[word]
			if !known {
				id = unknown
			}
			ids = append(ids, id)
		}
		for range width - len(row) {
			ids = append(ids, padding)
		}
	}
	return exchange.Lend(ids, int64(len(rows)), int64(width)) // Python sees the slice itself
}

// maxIDs keeps a length that is a slip from taking all memory.
const maxIDs = 1 << 30
