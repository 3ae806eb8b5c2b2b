"""Real parts are shared within the folder, and end with it: fixtures of scope `package`."""
