"""The operations of the API, by resource."""
