package joblist

// AfterNear is the end of the jobs that are found by the time in a trace id.
var AfterNear = afterNear

// Conditions returns the names of all conditions.
func Conditions() (names []string) {
	for _, c := range allConditions {
		names = append(names, c.name)
	}
	return names
}

// Text returns the statement that reads from the newest job on.
func (l List) Text() string {
	l.narrow()
	text, _ := l.text(newest)
	return text
}

// Indexes returns the indexes of the list's sources, and which of them are read as a whole.
func (l List) Indexes(fromOldest bool) map[string]bool {
	o := newest
	if fromOldest {
		o = oldest
	}
	l.narrow()
	sources, _ := l.sources(o)
	indexes := map[string]bool{}
	for _, s := range sources {
		indexes[s.index] = s.whole
	}
	return indexes
}

// EveryIndex returns the indexes of all sources.
func EveryIndex() (indexes []string) {
	for _, s := range allSources {
		indexes = append(indexes, s.index)
	}
	return indexes
}
