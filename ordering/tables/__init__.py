"""What is known of tables beyond their rows."""
