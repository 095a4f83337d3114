"""What several exercises say of the same mistake."""

READS_FIRST = "every sublayer reads the first x; each reads the stream as the sublayers before it left it."
