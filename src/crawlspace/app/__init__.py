"""The composition root: the only place that knows concrete classes and puts them together."""
