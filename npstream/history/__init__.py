"""What a group has done: audited, explained, inspected; and its positions moved by an operator."""
