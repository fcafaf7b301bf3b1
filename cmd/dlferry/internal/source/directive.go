package source

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

const prefix = "//dlferry:"

// directive is a comment line //dlferry:verb arguments.
type directive struct {
	comment *ast.Comment
	pos     token.Pos
	verb    string
	args    string
	argsPos token.Pos
	spaced  bool // written with blanks before, so that Go takes it for text
}

var spaced = regexp.MustCompile(`^//\s+dlferry:(export|default)\b`)

func directives(group *ast.CommentGroup) []directive {
	var out []directive
	for _, c := range group.List {
		text := c.Text
		lead := spaced.FindString(text)
		isSpaced := lead != ""
		at := len(prefix)
		switch {
		case isSpaced:
			at = strings.Index(text, "dlferry:") + len("dlferry:")
		case !strings.HasPrefix(text, prefix):
			continue
		}
		rest := strings.TrimRight(text[at:], " \t\r")
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		args := strings.TrimLeft(rest[end:], " \t")
		out = append(out, directive{c, c.Pos(), rest[:end], args, c.Pos() + token.Pos(at+len(rest)-len(args)), isSpaced})
	}
	return out
}

// word is a blank-separated word of a directive.
type word struct {
	text string
	pos  token.Pos
}

func (d directive) words() []word {
	var out []word
	rest, pos := d.args, d.argsPos
	for rest != "" {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			out = append(out, word{rest[:end], pos})
		}
		skip := min(end+1, len(rest))
		rest, pos = rest[skip:], pos+token.Pos(skip)
	}
	return out
}

// setting is name=value of a default directive; the value is an expression of Go.
type setting struct {
	name, value string
	pos         token.Pos
}

// settings splits the arguments into name=value. Values may hold blanks, as strings and calls do.
func (d directive) settings() (out []setting, ok bool) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(d.args))
	good := true
	s.Init(file, []byte(d.args), func(token.Position, string) { good = false }, 0)
	type lexeme struct {
		offset int
		tok    token.Token
		text   string
	}
	var found []lexeme
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		found = append(found, lexeme{file.Offset(pos), tok, text})
	}
	var starts []int
	for i := 0; i+1 < len(found); i++ {
		if found[i].tok == token.IDENT && found[i+1].tok == token.ASSIGN {
			starts = append(starts, i)
		}
	}
	if !good || len(starts) == 0 || starts[0] != 0 {
		return nil, false
	}
	for k, i := range starts {
		end := len(d.args)
		if k+1 < len(starts) {
			end = found[starts[k+1]].offset
		}
		value := strings.TrimSpace(d.args[found[i+1].offset+1 : end])
		if value == "" {
			return nil, false
		}
		out = append(out, setting{found[i].text, value, d.argsPos + token.Pos(found[i].offset)})
	}
	return out, true
}
