"""Changefeeds' files behind the API: what may be changed, referred to and shown, and how they are written."""
