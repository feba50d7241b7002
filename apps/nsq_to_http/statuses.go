package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Statuses that may be given: not those of success, which finish a message.
const (
	firstStatus = 300
	lastStatus  = 599
)

// statuses is a set of HTTP statuses, a flag.Value: "400,413-415".
type statuses []statusRange

// statusRange has its limits in it.
type statusRange struct{ from, to int }

func (s *statuses) String() string {
	texts := make([]string, len(*s))
	for i, r := range *s {
		if texts[i] = strconv.Itoa(r.from); r.to != r.from {
			texts[i] += "-" + strconv.Itoa(r.to)
		}
	}
	return strings.Join(texts, ",")
}

// Set replaces the set; the empty text is the empty set.
func (s *statuses) Set(text string) error {
	set := statuses{}
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.Atoi(first)
		to, errTo := strconv.Atoi(last)
		if errFrom != nil || errTo != nil || from < firstStatus || from > to || to > lastStatus {
			return fmt.Errorf("want statuses from %d to %d, like 400,413-415", firstStatus, lastStatus)
		}
		set = append(set, statusRange{from, to})
	}
	*s = set
	return nil
}

func (s statuses) contain(status int) bool {
	for _, r := range s {
		if r.from <= status && status <= r.to {
			return true
		}
	}
	return false
}
