"""The web console: what agents remember, in a browser. A client of the API like any other."""
