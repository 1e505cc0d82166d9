"""Orders come in; each one wants a receipt, a charge and an invoice."""
