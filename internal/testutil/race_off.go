//go:build !race

package testutil

var raceFlags []string
