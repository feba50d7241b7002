package auth

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// maxExpression is the longest expression, in bytes: room for a list of several hundred topics.
	maxExpression = 16 << 10
	// maxProgram is how large the expressions of an answer may become when they are compiled, in
	// instructions: ten thousand entries of two dozen letters.
	maxProgram = 1 << 18
)

// compiler compiles the expressions of one answer, equal ones once. A few bytes such as "a{1000}"
// can make a large program, so it adds up how large.
type compiler struct {
	done map[string]*regexp.Regexp
	left int // instructions of maxProgram
}

func newCompiler() *compiler {
	return &compiler{done: make(map[string]*regexp.Regexp), left: maxProgram}
}

// compile returns the expression. Its error does not show the text.
func (c *compiler) compile(text string) (*regexp.Regexp, error) {
	if expression, ok := c.done[text]; ok {
		return expression, nil
	}
	if len(text) > maxExpression {
		return nil, fmt.Errorf("expression is longer than %d bytes", maxExpression)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("compile expression: %w", withoutText(err))
	}
	if c.left -= programSize(tree, c.left); c.left < 0 {
		return nil, fmt.Errorf("expressions are larger than %d instructions", maxProgram)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("compile expression: %w", withoutText(err))
	}
	c.done[text] = expression
	return expression, nil
}

// programSize is about how many instructions tree becomes; more than most is most + 1.
func programSize(tree *syntax.Regexp, most int) int {
	size := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		size = min(size+programSize(sub, most), most+1)
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Max, tree.Min+1) // at most 1001; Max is -1 where there is none
	}
	return min(size, most+1)
}

// withoutText is what is wrong with an expression.
func withoutText(err error) error {
	var mistake *syntax.Error
	if errors.As(err, &mistake) {
		return errors.New(mistake.Code.String())
	}
	return errors.New("invalid")
}
