"""The other contestants: small extensions of our own writing over other libraries."""
