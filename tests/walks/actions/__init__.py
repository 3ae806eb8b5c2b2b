"""What happens on a walk: one small value per action, which `carry_out` lets happen."""
