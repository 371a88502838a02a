"""What makes an index: line by line, or by way of a tokenizer."""
