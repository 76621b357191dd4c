"""What goes over the wire: models of what requests hold and of what answers hold, and answers made from values."""
