"""Sentences that several exercises share."""

READS_FIRST = "every sublayer reads the first x; each must read the stream that the sublayers before it have produced."
