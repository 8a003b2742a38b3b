"""The built book, read in Chromium."""
