package project

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// oldestPython is what the C extension needs.
const oldestPython = ">=3.11"

// Metadata is the text of METADATA, and the licence files by their names in dist-info/licenses.
func (p *Project) Metadata() (text string, licenses map[string][]byte, err error) {
	var out strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n        "))
		}
	}
	field("Metadata-Version", "2.4")
	field("Name", p.Name)
	field("Version", p.Version)
	field("Summary", strings.ReplaceAll(p.Description, "\n", " "))
	people := func(role string, list []Person) {
		var names, emails []string
		for _, person := range list {
			switch {
			case person.Email == "":
				names = append(names, person.Name)
			case person.Name == "":
				emails = append(emails, person.Email)
			default:
				emails = append(emails, fmt.Sprintf("%s <%s>", person.Name, person.Email))
			}
		}
		field(role, strings.Join(names, ", "))
		field(role+"-email", strings.Join(emails, ", "))
	}
	people("Author", p.Authors)
	people("Maintainer", p.Maintainers)
	licenses, err = p.licenses(field)
	if err != nil {
		return "", nil, err
	}
	field("Keywords", strings.Join(p.Keywords, ","))
	for _, c := range p.Classifiers {
		field("Classifier", c)
	}
	for _, label := range slices.Sorted(maps.Keys(p.URLs)) {
		field("Project-URL", label+", "+p.URLs[label])
	}
	if p.RequiresPython == "" {
		p.RequiresPython = oldestPython
	}
	field("Requires-Python", p.RequiresPython)
	for _, d := range p.Dependencies {
		field("Requires-Dist", d)
	}
	for _, extra := range slices.Sorted(maps.Keys(p.Optional)) {
		field("Provides-Extra", extra)
		for _, d := range p.Optional[extra] {
			what, marker, has := strings.Cut(d, ";")
			if has {
				field("Requires-Dist", fmt.Sprintf("%s; (%s) and extra == '%s'", strings.TrimSpace(what), strings.TrimSpace(marker), extra))
			} else {
				field("Requires-Dist", fmt.Sprintf("%s; extra == '%s'", strings.TrimSpace(d), extra))
			}
		}
	}
	body, kind, err := p.readme()
	if err != nil {
		return "", nil, err
	}
	field("Description-Content-Type", kind)
	if body != "" {
		out.WriteString("\n" + body)
	}
	return out.String(), licenses, nil
}

func (p *Project) licenses(field func(name, value string)) (map[string][]byte, error) {
	patterns := p.LicenseFiles
	switch license := p.License.(type) {
	case nil:
	case string:
		field("License-Expression", license)
	case map[string]any:
		if text, ok := license["text"].(string); ok {
			field("License", text)
		}
		if file, ok := license["file"].(string); ok {
			patterns = append(patterns, file)
		}
	default:
		return nil, fmt.Errorf("license in pyproject.toml is a %T; write an expression such as \"MIT\"", license)
	}
	named := len(patterns) > 0
	if !named {
		patterns = []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"}
	}
	out := map[string][]byte{}
	for _, pattern := range patterns {
		if !filepath.IsLocal(pattern) {
			return nil, fmt.Errorf("license-files: %s lies outside the project", pattern)
		}
		found, err := filepath.Glob(filepath.Join(p.Dir, pattern))
		if err != nil || named && len(found) == 0 {
			return nil, fmt.Errorf("license-files: no file matches %s in %s", pattern, p.Dir)
		}
		for _, name := range found {
			inside, err := filepath.Rel(p.Dir, name)
			if err != nil {
				return nil, err
			}
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			out[filepath.ToSlash(inside)] = text
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		field("License-File", name)
	}
	return out, nil
}

// readme is the long description and its type.
func (p *Project) readme() (text, kind string, err error) {
	file := ""
	switch readme := p.Readme.(type) {
	case nil:
		return "", "", nil
	case string:
		file = readme
	case map[string]any:
		kind, _ = readme["content-type"].(string)
		text, _ = readme["text"].(string)
		file, _ = readme["file"].(string)
	default:
		return "", "", fmt.Errorf("readme in pyproject.toml is a %T; write a file's name", readme)
	}
	if kind == "" {
		switch strings.ToLower(filepath.Ext(file)) {
		case ".md":
			kind = "text/markdown"
		case ".rst":
			kind = "text/x-rst"
		default:
			kind = "text/plain"
		}
	}
	if file == "" {
		return text, kind, nil
	}
	if !filepath.IsLocal(file) {
		return "", "", fmt.Errorf("readme: %s lies outside the project", file)
	}
	content, err := os.ReadFile(filepath.Join(p.Dir, file))
	if err != nil {
		return "", "", fmt.Errorf("readme: %w; write it, or take the line out of pyproject.toml", err)
	}
	return string(content), kind, nil
}

// EntryPoints is the text of entry_points.txt, empty when there are none.
func (p *Project) EntryPointsText() string {
	groups := map[string]map[string]string{"console_scripts": p.Scripts, "gui_scripts": p.GUIScripts}
	maps.Copy(groups, p.EntryPoints)
	var out strings.Builder
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[group]) == 0 {
			continue
		}
		fmt.Fprintf(&out, "[%s]\n", group)
		for _, name := range slices.Sorted(maps.Keys(groups[group])) {
			fmt.Fprintf(&out, "%s = %s\n", name, groups[group][name])
		}
		out.WriteString("\n")
	}
	return out.String()
}
