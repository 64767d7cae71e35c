"""What a person is asked, and what they answer."""
