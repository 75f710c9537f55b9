"""What REST answers about money, field by field, as the schema says it."""
