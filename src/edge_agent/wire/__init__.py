"""Codecs between what a run says and what goes over a wire or into a row."""
