package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// entry is one constant of a header.
type entry struct {
	name       string // as in C
	value      uint64
	text       string // the printed name, from the comment
	unreleased bool   // not in DLPack 1.3
}

// header is what the generator reads from the C declarations.
type header struct {
	devices, codes, flags, kinds []entry
	major, minor                 uint64
	names                        []entry // capsule and attribute names; text holds the string
}

var (
	enumLine   = regexp.MustCompile(`^\s*(DLF_[A-Z0-9_]+)\s*=\s*(\d+),?\s*/\*\s*(.*?)\s*\*/$`)
	enumStart  = regexp.MustCompile(`^\s*DLF_[A-Z0-9_]+\s*=`)
	flagLine   = regexp.MustCompile(`^#define (DLF_FLAG_[A-Z0-9_]+) \(1ull << (\d+)\)$`)
	stringLine = regexp.MustCompile(`^#define (DLF_(?:CAPSULE|ATTR)_[A-Z0-9_]+) "([^"]+)"$`)
	numberLine = regexp.MustCompile(`^#define (DLF_VERSION_[A-Z]+) (\d+)$`)
	guardLine  = regexp.MustCompile(`^#define DLF_[A-Z]+(_[A-Z]+)*_H$`)
)

// parse reads one header into h. A constant that it does not understand is an error, so that none is lost silently.
func (h *header) parse(file, text string) error {
	for i, line := range strings.Split(text, "\n") {
		fail := func(why string) error { return fmt.Errorf("%s:%d: %s: %s", file, i+1, why, line) }
		switch {
		case enumLine.MatchString(line):
			m := enumLine.FindStringSubmatch(line)
			v, err := strconv.ParseUint(m[2], 10, 31)
			if err != nil {
				return fail("value out of range")
			}
			text, unreleased := strings.CutSuffix(m[3], " (unreleased)")
			e := entry{m[1], v, text, unreleased}
			list := h.list(m[1])
			if list == nil {
				return fail("enum value of no known family")
			}
			for _, old := range *list {
				if old.value == v || old.text == text {
					return fail("value or name given twice")
				}
			}
			*list = append(*list, e)
		case flagLine.MatchString(line):
			m := flagLine.FindStringSubmatch(line)
			shift, err := strconv.ParseUint(m[2], 10, 6)
			if err != nil {
				return fail("shift out of range")
			}
			text := strings.ToLower(strings.TrimPrefix(m[1], "DLF_FLAG_"))
			h.flags = append(h.flags, entry{m[1], 1 << shift, text, false})
		case stringLine.MatchString(line):
			m := stringLine.FindStringSubmatch(line)
			h.names = append(h.names, entry{m[1], 0, m[2], false})
		case numberLine.MatchString(line):
			m := numberLine.FindStringSubmatch(line)
			v, err := strconv.ParseUint(m[2], 10, 32)
			switch {
			case err != nil:
				return fail("version out of range")
			case m[1] == "DLF_VERSION_MAJOR":
				h.major = v
			case m[1] == "DLF_VERSION_MINOR":
				h.minor = v
			default:
				return fail("unknown version macro")
			}
		case enumStart.MatchString(line), strings.HasPrefix(line, "#define DLF_") && !guardLine.MatchString(line):
			return fail("constant not understood")
		}
	}
	return nil
}

func (h *header) list(name string) *[]entry {
	switch {
	case strings.HasPrefix(name, "DLF_DEVICE_"):
		return &h.devices
	case strings.HasPrefix(name, "DLF_CODE_"):
		return &h.codes
	case strings.HasPrefix(name, "DLF_KIND_"):
		return &h.kinds
	}
	return nil
}

// complete says whether every family was found.
func (h *header) complete() error {
	for family, n := range map[string]int{
		"devices": len(h.devices), "dtype codes": len(h.codes), "flags": len(h.flags),
		"kinds": len(h.kinds), "names": len(h.names), "version": int(h.major),
	} {
		if n == 0 {
			return fmt.Errorf("no %s found in the headers", family)
		}
	}
	return nil
}
