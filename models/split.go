package models

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// maxParts bounds the files of one model; the pattern's five digits allow more.
const maxParts = 1024

// splitPattern is llama.cpp's name for a part of a model (llama_split_path).
var splitPattern = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.gguf$`)

// splitName takes a part's file name apart. Numbers count from 1.
func splitName(name string) (stem string, part, parts int, ok bool) {
	m := splitPattern.FindStringSubmatch(name)
	if m == nil {
		return "", 0, 0, false
	}
	part, _ = strconv.Atoi(m[2]) // five digits always fit
	parts, _ = strconv.Atoi(m[3])
	return m[1], part, parts, true
}

// readAll reads the header of a model's file, or of all its files.
func readAll(path string) (files []string, headers []*header, err error) {
	first, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	files, headers = []string{path}, []*header{first}
	count := int(first.size("split.count"))
	if count <= 1 {
		return files, headers, nil
	}
	folder, name := filepath.Split(path)
	stem, part, parts, ok := splitName(name)
	switch {
	case !ok || parts != count || parts > maxParts:
		return nil, nil, fmt.Errorf("%s: is one of %d parts, whose names must end in -00001-of-%05d.gguf and so on", path, count, count)
	case part != 1:
		return nil, nil, fmt.Errorf("%s: is part %d of %d; give the first: %s-00001-of-%05d.gguf", path, part, parts, stem, parts)
	}
	for i := 2; i <= parts; i++ {
		file := filepath.Join(folder, fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i, parts))
		h, err := readFile(file)
		if err != nil {
			return nil, nil, fmt.Errorf("part %d of %d: %w", i, parts, err)
		}
		files, headers = append(files, file), append(headers, h)
	}
	return files, headers, nil
}
