package grammar

import "slices"

// itemLists are the items that Uniques have had so far, as lists that share
// their beginnings. List 1 is empty; 0 is no list.
type itemLists struct {
	last []listedItem // of the lists from 2 on
	ids  map[listedItem]int
}

// A listedItem is the last item of a list and the list before it.
type listedItem struct {
	before int
	text   string
}

const emptyList = 1

// with is the list with one more item, or 0 if it has that item.
func (l *itemLists) with(list int, text string) int {
	for at := list; at > emptyList; at = l.last[at-2].before {
		if l.last[at-2].text == text {
			return 0
		}
	}
	key := listedItem{list, text}
	id, ok := l.ids[key]
	if !ok {
		if l.ids == nil {
			l.ids = map[listedItem]int{}
		}
		l.last = append(l.last, key)
		id = len(l.last) + emptyList
		l.ids[key] = id
	}
	return id
}

func (m *matcher) unique(u Unique, start place) []place {
	ends := slices.Clone(m.match(u.Body, []place{{start.offset, emptyList}}))
	for i := range ends {
		ends[i].items = start.items
	}
	return sortedSet(ends)
}

func (m *matcher) item(it Item, start place) []place {
	ends := m.match(it.Body, []place{{offset: start.offset}})
	if start.items == 0 {
		return ends
	}
	var out []place
	for _, end := range ends {
		text := string(m.text[start.offset:end.offset])
		if list := m.lists.with(start.items, text); list != 0 {
			out = append(out, place{end.offset, list})
		} else if text != "" {
			m.miss(end.offset-1, func() string { return "an item that differs from the others" })
		}
	}
	return out
}
