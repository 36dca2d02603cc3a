"""How findings are written down: text, JSON, GitHub annotations, SARIF."""
