// Package arch has no code but a test: it holds the table of which package of this module may
// import which, with the reasons, and the few other rules of layout that a reader may rely on. It
// reads the source files only, of every platform, and knows nothing of what they do.
package arch
