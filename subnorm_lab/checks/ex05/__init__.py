"""The exercises on timing and precision. All times are simulated: no exercise reads the machine's clock."""
