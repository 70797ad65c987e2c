"""What all channels of 0.4.0 share: actions, commands, errors, notifications, state."""
