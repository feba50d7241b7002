package consume

// SetMaxInFlight changes --max-in-flight for this consumer; with 0 no more messages come until it is
// changed again.
func (c *Consumer) SetMaxInFlight(messages int) { c.lib.ChangeMaxInFlight(messages) }
