"""The exercises on timing and precision. All times are given: no clock of this machine is read."""
