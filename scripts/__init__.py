"""Set-up, local serving and checks of this repository; nothing in here reaches the Worker."""
